#include "runmanager/training/run_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/checkpoint_writer.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/training/epoch_watch.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/resume_point.h"
#include "runmanager/training/run_evaluation.h"
#include "runmanager/training/run_recorder.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

// Thrown through the training loop when a signal asks to stop.
struct Stopped {
  int signal;
};

RunFailure failure_of(const std::exception& error) {
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return RunFailure::kDevice;
  return dynamic_cast<const DivergedError*>(&error) != nullptr ? RunFailure::kDiverged : RunFailure::kError;
}

// Trains one run; used once. An epoch is finished when its checkpoint is in its file. A thread writes it
// while the next epoch trains: `unfinished_` is the epoch whose checkpoint is on its way. All that ends the
// run waits for it first.
class RunTrainer {
 public:
  RunTrainer(const PreparedRun& run, const ReportEvent& report, const TrainerOptions& options)
      : run_(run),
        config_(*run.config),
        report_(report),
        options_(options),
        loader_(run.data->train, loader_options(config_)) {}

  TrainedRun run() {
    try {
      begin();
      return train_to_its_end();
    } catch (const RunTakenOver&) {
    } catch (const IoError&) {
      // Another attempt removes the files of this one.
      if (!options_.owner || owns(*options_.owner)) throw;
    }
    if (log_) log_->warn("another process has taken over this run");
    return {.record = std::move(record_), .failure = RunFailure::kTakenOver};
  }

 private:
  TrainedRun train_to_its_end() {
    RunFailure failure = RunFailure::kNone;
    try {
      if (train())
        end(RunStatus::kCompleted, "");
      else
        end(RunStatus::kInterrupted, fmt::format("waits after epoch {}", epoch_));
    } catch (const Stopped& stopped) {
      end(RunStatus::kInterrupted, fmt::format("stopped by {} in epoch {}", signal_name(stopped.signal),
                                               std::min(epoch_ + 1, config_.epochs)));
    } catch (const IoError& error) {
      log_->error("{}", error.what());
      throw;
    } catch (const std::exception& error) {
      failure = failure_of(error);
      const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
      end(RunStatus::kFailed, is_memory ? "out of memory" : error.what());
    }
    return {.record = std::move(record_), .failure = failure};
  }

  // Opens the run's files: those of an earlier start, if its last epoch can be continued, else new ones.
  void begin() {
    Run run = describe_run(config_, run_.device.name(), run_.jobs);
    run.class_names = run_.data->class_names;
    run.has_validation = run_.data->validation.count > 0;
    const RecorderOptions recorder_options{.directory = options_.directory,
                                           .clock = options_.clock,
                                           .provenance = run_.provenance,
                                           .survives = Survives::kKill,
                                           .shared = options_.owner.has_value(),
                                           .check_owner = [this] { check_owner(options_.owner); },
                                           .learning_rate = schedule_};
    const TrainedNetwork trained{run_.network.get(), &loader_};
    ResumePoint point = find_resume_point(run_, options_.directory / config_.name);
    std::optional<Checkpoint>& old = point.checkpoint;
    std::string& problem = point.problem;
    // The engine comes before the files: with other kernels the run has to start from the beginning, which
    // removes what the earlier start has written.
    if (old && !makes_same_engine(old->progress.record.kernels, problem)) old.reset();
    if (old) {
      try {
        if (options_.owner)
          take_over_run(options_.directory / config_.name, options_.owner->id, *run_.network,
                        recorder_options.check_owner, point);
        recorder_.emplace(recorder_options, run, trained, old->progress, record_);
      } catch (const ReadError&) {
        throw;  // as in find_resume_point()
      } catch (const DataError& error) {
        problem = error.what();
        old.reset();
        engine_.reset();
      }
    }
    if (!old) recorder_.emplace(recorder_options, run, trained, record_);
    evaluation_.emplace(run_, *recorder_, report_, [this] { after_batch(); });
    log_.emplace(recorder_->run_directory() / kLogFile, /*is_new=*/!old && !options_.owner);
    open_checkpoint(old.has_value(), point.is_previous);
    if (old) {
      if (const std::size_t restored = recorder_->restored_epochs(); restored > 0)
        log_->warn("events were lost; wrote the scalars of {} epochs again", restored);
      if (point.is_previous) log_->warn("{}; resumed from {}", problem, kPreviousCheckpointFile);
      epoch_ = static_cast<int>(old->progress.record.epochs.size());
      steps_ = old->progress.position.batches;
      if (!resume_best_file(config_, recorder_->run_directory(), record_.best_epoch, epoch_))
        record_.best_epoch.reset();
      for (const EpochRecord& epoch : record_.epochs)
        if (watch_) watch_->add(epoch);
      resumed_ = std::move(old->state);
      log_->info("resumed after epoch {}", epoch_);
    } else if (continues(config_)) {
      Checkpoint start = read_checkpoint(recorder_->run_directory() / kStartFile, *run_.network);
      recorder_->inherit(start.progress.record);
      epoch_ = static_cast<int>(record_.epochs.size());
      steps_ = start.progress.position.batches;
      resumed_ = std::move(start.state);
      log_->info("continues {} after epoch {}", start.progress.record.name, epoch_);
    } else {
      if (!problem.empty()) log_->warn("not resumed but trained from the start: {}", problem);
      log_->info("run {} on {}: {} training samples in {} batches, {} parameters", config_.name,
                 run_.device.name(), run_.data->train.count, loader_.batch_count(),
                 run_.network->parameter_count());
    }
    report_(RunPlan{.name = config_.name,
                    .epochs = config_.epochs,
                    .batches = loader_.batch_count(),
                    .samples = run_.data->train.count,
                    .trained_epochs = epoch_,
                    .finished_epochs = all_epochs(record_),
                    .has_classes = run_.data->target_names.empty()});
  }

  // One that the run goes on from is kept until a newer one is on disk.
  void open_checkpoint(bool resumed, bool from_previous) {
    const std::filesystem::path path = recorder_->run_directory() / kCheckpointFile;
    checkpoint_.emplace(path, *run_.network, [this](Survives survives) { recorder_->flush(survives); });
    if (!resumed) return;
    if (from_previous) link_file_atomically(recorder_->run_directory() / kPreviousCheckpointFile, path);
    checkpoint_->keep_existing();
  }

  // Makes the engine, which is to have the kernels that have trained the run so far. Returns false and sets
  // `problem` if there are others now, whose bits may differ. If it cannot be made, train() reports why.
  bool makes_same_engine(const std::string& kernels, std::string& problem) {
    try {
      engine_ = make_engine();
    } catch (const std::exception&) {
      not_made_ = std::current_exception();
      return true;
    }
    if (engine_->kernels() == kernels) return true;
    problem =
        fmt::format("the checkpoint was trained with other kernels than there are now, {} instead of {}",
                    engine_->kernels(), kernels.empty() ? "unknown ones" : kernels);
    engine_.reset();
    return false;
  }

  std::unique_ptr<Engine> make_engine() {
    EngineOptions options = engine_options(run_);
    options.threads = threads_ = options_.threads();
    return options_.make_engine(*run_.network, options);
  }

  // Returns whether the run is finished; else it has paused.
  bool train() {
    const double begin = options_.clock();
    if (not_made_) std::rethrow_exception(not_made_);
    if (!engine_) engine_ = make_engine();
    record_.kernels = engine_->kernels();
    if (!record_.kernels.empty()) log_->info("kernels: {}", record_.kernels);
    if (resumed_) {
      restore_state(*engine_, *resumed_);
      resumed_.reset();
    } else {
      set_initial_weights(*engine_, run_);
    }
    const std::optional<Placement> placement = prepare_engine(*engine_, run_, loader_);
    const double seconds = options_.clock() - begin;
    recorder_->track_setup(seconds, placement);
    log_->info("set up in {:.3g} s{}", seconds,
               placement ? fmt::format(", samples on the {}", placement_names().of(*placement)) : "");
    if (config_.evaluate_first) evaluate_untrained();
    for (; epoch_ < config_.epochs && !(watch_ && watch_->has_ended()); ++epoch_) {
      if (run_.until_epoch > 0 && epoch_ >= run_.until_epoch) return false;
      train_epoch();
    }
    if (epoch_ < config_.epochs) {
      record_.stop_reason = watch_->reason();
      log_->info("stopped early: {}", watch_->reason());
    }
    if (keeps_best(config_)) restore_best();
    evaluation_->test(*engine_, {.epoch = epoch_, .lr = config_.lr}, /*keeps_outputs=*/true);
    evaluation_->predictions(*engine_);
    return true;
  }

  // Nothing is trained after this.
  void restore_best() {
    if (!record_.best_epoch || *record_.best_epoch == epoch_) return;
    finish_epoch();
    const std::filesystem::path file = recorder_->run_directory() / kBestFile;
    const Checkpoint best = read_checkpoint(file, *run_.network);
    if (const int epoch = best.progress.record.epochs.back().epoch; epoch != *record_.best_epoch) {
      throw DataError(fmt::format("{}: is of epoch {}, not of the best epoch, {}", file.string(), epoch,
                                  *record_.best_epoch));
    }
    engine_->set_parameters(best.state.weights.parameters);
    engine_->set_buffers(best.state.weights.buffers);
    log_->info("test and predictions are those of epoch {}", *record_.best_epoch);
  }

  // Whether the test and the predictions follow this epoch, with its weights.
  bool may_be_last() const {
    if (keeps_best(config_)) return false;
    return epoch_ + 1 == config_.epochs || (watch_ && watch_->may_end());
  }

  // A resumed run has its epoch 0 from its first start, or none: the untrained weights are gone.
  void evaluate_untrained() {
    if (epoch_ > 0) {
      if (!record_.untrained) log_->warn("was begun without evaluate_first, so it has no epoch 0");
      return;
    }
    const EpochRecord& epoch = evaluation_->validate_untrained(*engine_, config_.lr);
    log_->info("{}", epoch_text(epoch));
    report_(epoch);
  }

  // A sweep gives a run more threads when others have ended. The number of threads changes no bit, so a new
  // engine can continue from the state of the old one.
  void apply_thread_count() {
    if (options_.threads() == threads_) return;
    const TrainingState state = capture_state(*engine_);
    engine_.reset();  // Its memory, and the other ranks it has, are free for the new one.
    engine_ = make_engine();
    restore_state(*engine_, state);
    prepare_engine(*engine_, run_, loader_);
    log_->info("goes on with {} threads", threads_);
  }

  void train_epoch() {
    apply_thread_count();
    report_(TrainedBatches{.epoch = epoch_ + 1});
    engine_->take_device_seconds();
    engine_->take_communication_seconds();
    recorder_->begin_epoch();
    recorder_->track_learning_rate(schedule_.at(epoch_, 0).learning_rate);
    loader_.begin_epoch(static_cast<std::uint32_t>(epoch_));
    std::int64_t batch = 0;
    for (const Batch* samples = loader_.next(); samples != nullptr; samples = loader_.next(), ++batch) {
      const bool logged = config_.log.batches > 0 && steps_ % config_.log.batches == 0;
      if (logged) track_totals(batch);  // so that the next totals are of this batch alone
      engine_->train(*samples, schedule_.at(epoch_, batch));
      ++untracked_;
      if (logged || untracked_ >= engine_->batches_between_totals()) {
        const Totals totals = track_totals(batch + 1);
        if (logged) recorder_->track_batch(totals, steps_);
        if (logged && config_.log.validation_batches > 0) log_validation_batches();
      }
      ++steps_;
      after_batch();
    }
    track_totals(batch);
    recorder_->end_training();
    if (const auto seconds = engine_->take_device_seconds()) recorder_->track_device_seconds(*seconds);
    if (const auto seconds = engine_->take_communication_seconds())
      recorder_->track_communication_seconds(*seconds);
    if (epoch_ == 0 && config_.log.graph) profile();
    if (config_.log.histograms) recorder_->track_parameters(*engine_);
    evaluation_->validate(*engine_, place(), may_be_last());
    finish_epoch();
    const double begin = options_.clock();
    TrainingState state = capture_state(*engine_);
    check_weights(state.weights, place());
    record_.logging_seconds += options_.clock() - begin;
    const EpochRecord& epoch = recorder_->end_epoch();
    const bool is_best = watch_ && watch_->add(epoch) && keeps_best(config_);
    if (is_best) record_.best_epoch = epoch.epoch;
    start_checkpoint(epoch, std::move(state), is_best);
  }

  void log_validation_batches() {
    const double begin = options_.clock();
    if (const auto totals = evaluation_->validation_batches(*engine_, place(), steps_))
      recorder_->record_validation_batch(*totals, steps_, options_.clock() - begin);
  }

  void profile() {
    const double begin = options_.clock();
    evaluation_->profile(*engine_);
    record_.logging_seconds += options_.clock() - begin;
  }

  // Fetches the sums of the batches since the last call, which end before batch `end` of the epoch. Engines
  // keep them on their device, and fetching them waits for it: hence not after every batch.
  Totals track_totals(std::int64_t end) {
    if (untracked_ == 0) return {};
    const Totals totals = engine_->take_totals();
    check_training_loss(totals, place(end - untracked_, end));
    recorder_->track(totals);
    report_(TrainedBatches{.epoch = epoch_ + 1,
                           .count = static_cast<std::size_t>(std::exchange(untracked_, 0)),
                           .totals = totals});
    return totals;
  }

  TrainingPlace place(std::int64_t begin = 0, std::int64_t end = 0) const {
    return {.epoch = epoch_ + 1, .begin = begin, .end = end, .lr = config_.lr};
  }

  // Waits for the last checkpoint first: it decides which epochs are finished, and its thread flushes events.
  void end(RunStatus status, const std::string& reason) {
    finish_epoch();
    report_(RunPhase{std::string(kWritesFiles)});
    log_end(*log_, record_.metrics, status, reason);
    recorder_->end(status, reason);
  }

  // Starts to write the epoch's checkpoint; training goes on meanwhile. `state` is a copy, so that it stays
  // that of this epoch.
  void start_checkpoint(const EpochRecord& epoch, TrainingState state, bool is_best) {
    const double begin = options_.clock();
    checkpoint_->start(std::move(state), record_, recorder_->position(steps_), is_best, config_.epochs == 1);
    unfinished_ = epoch;
    record_.logging_seconds += options_.clock() - begin;
  }

  // Waits for the checkpoint that is being written, if any, and reports its epoch as finished.
  void finish_epoch() {
    if (!unfinished_) return;
    const double begin = options_.clock();
    const EpochRecord epoch = *std::exchange(unfinished_, std::nullopt);
    if (!checkpoint_->is_ready()) report_(RunPhase{std::string(kWritesFiles)});
    checkpoint_->finish();
    record_.logging_seconds += options_.clock() - begin;
    log_->info("{}", epoch_text(epoch));
    report_(epoch);
  }

  // After every batch, of training and of evaluation.
  void after_batch() {
    if (unfinished_ && checkpoint_->is_ready()) finish_epoch();
    if (const int signal = options_.stop_requested(); signal != 0) throw Stopped{signal};
  }

  const PreparedRun& run_;
  const RunConfig& config_;
  const ReportEvent& report_;
  const TrainerOptions& options_;
  DataLoader loader_;
  const RunSchedule schedule_{config_, static_cast<std::int64_t>(loader_.batch_count())};
  std::optional<EpochWatch> watch_ = make_epoch_watch(config_, run_.data->validation.count > 0);
  RunRecord record_;
  std::optional<RunRecorder> recorder_;      // refers to loader_ and record_
  std::optional<RunEvaluation> evaluation_;  // refers to recorder_
  std::unique_ptr<Engine> engine_;
  std::exception_ptr not_made_;  // why begin() has no engine
  std::optional<LogFile> log_;
  std::optional<CheckpointWriter> checkpoint_;  // its thread uses recorder_, so it is destroyed first
  std::optional<EpochRecord> unfinished_;       // trained and recorded; its checkpoint is being written
  int threads_ = 0, epoch_ = 0;                 // of engine_; from 0, unlike in records and messages
  // Batches: since the last take_totals(); in this run, earlier starts included.
  std::int64_t untracked_ = 0, steps_ = 0;
  std::optional<TrainingState> resumed_;  // of the checkpoint, until the engine has it
};

}  // namespace

TrainedRun train_run(const PreparedRun& run, const ReportEvent& report, const TrainerOptions& options) {
  return RunTrainer(run, report, options).run();
}

}  // namespace sweep
