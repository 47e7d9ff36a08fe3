#include "runmanager/training/run_trainer.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/checkpoint_writer.h"
#include "runmanager/records/identity.h"
#include "runmanager/records/run_files.h"
#include "runmanager/terminal/table.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

// A CPU takes two blocks of 16 samples on one thread: more of them say nothing new. With few samples a GPU's
// times would be those of its launches.
constexpr std::size_t kProfiledOnCpu = 32, kProfiledOnCuda = 1000;

// Thrown through the training loop when a signal asks to stop.
struct Stopped {
  int signal;
};

std::shared_ptr<spdlog::logger> open_log(const std::filesystem::path& path, bool truncate) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(path.string(), truncate);
    auto log = std::make_shared<spdlog::logger>("run", std::move(sink));
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    log->flush_on(spdlog::level::info);
    // A full disk is reported by the files that matter.
    log->set_error_handler([](const std::string&) {});
    return log;
  } catch (const spdlog::spdlog_ex& error) {
    throw IoError(error.what());
  }
}

class RunTrainer {
 public:
  RunTrainer(const PreparedRun& run, RunManager& manager, TrainingObserver& observer,
             const TrainerOptions& options)
      : run_(run),
        config_(*run.config),
        manager_(manager),
        observer_(observer),
        options_(options),
        loader_(run.data->train, {.batch_size = config_.batch_size,
                                  .shuffle = config_.shuffle,
                                  .num_workers = config_.num_workers,
                                  .seed = config_.seed,
                                  .repeat = config_.repeat}) {}

  bool run() {
    begin();
    try {
      train();
      end(RunStatus::kCompleted, "");
    } catch (const Stopped& stopped) {
      end(RunStatus::kInterrupted,
          fmt::format("stopped by {} in epoch {}", signal_name(stopped.signal), epoch_));
    } catch (const IoError& error) {
      log_->error("{}", error.what());
      throw;
    } catch (const std::bad_alloc&) {
      end(RunStatus::kFailed, "out of memory");
    } catch (const DeviceError& error) {
      end(RunStatus::kFailed, error.what());
      return false;
    } catch (const std::exception& error) {
      end(RunStatus::kFailed, error.what());
    }
    return true;
  }

 private:
  void begin() {
    const Run run = describe_run(config_, run_.device, run_.jobs);
    std::string trouble;  // why an old checkpoint is of no use
    std::optional<Checkpoint> old = usable_checkpoint(trouble);
    if (old && !makes_same_engine(old->state.kernels, trouble)) old.reset();
    if (old) {
      try {
        manager_.resume_run(run, *run_.network, loader_, old->progress);
      } catch (const DataError& error) {
        trouble = error.what();
        old.reset();
        engine_.reset();
      }
    }
    if (!old) manager_.begin_run(run, *run_.network, loader_);
    log_ = open_log(manager_.run_directory() / kLogFile, /*truncate=*/!old);
    if (old) {
      epoch_ = static_cast<int>(old->progress.record.epochs.size());
      steps_ = old->progress.position.batches;
      resumed_ = std::move(old->state);
      log_->info("resumed after epoch {}", epoch_ - 1);
    } else {
      if (!trouble.empty()) log_->warn("not resumed but trained from the start: {}", trouble);
      log_->info("run {} on {}: {} training samples in {} batches, {} parameters", config_.name,
                 run_.device.name(), run_.data->train.count, loader_.batch_count(),
                 run_.network->parameter_count());
    }
    observer_.begin_run({.number = config_.index + 1,
                         .name = config_.name,
                         .epochs = config_.epochs,
                         .batches = loader_.batch_count(),
                         .samples = run_.data->train.count,
                         .first_epoch = epoch_});
  }

  // What an earlier start has left, if this run can go on from it.
  std::optional<Checkpoint> usable_checkpoint(std::string& trouble) const {
    const std::filesystem::path file = manager_.directory() / config_.name / kCheckpointFile;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return std::nullopt;
    try {
      Checkpoint old = read_checkpoint(file, *run_.network);
      if (same_identity(old.progress.record, config_, run_.provenance)) return old;
      trouble = "the checkpoint is of a run with other settings";
    } catch (const DataError& damaged) {
      trouble = damaged.what();
    }
    return std::nullopt;
  }

  // Makes the engine, if it can go on with the kernels that trained so far. An engine that cannot be made is
  // left to train(), which says why.
  bool makes_same_engine(const std::string& kernels, std::string& trouble) {
    try {
      engine_ = make_engine(kernels);
    } catch (const std::exception&) {
      return true;
    }
    if (engine_->kernels() == kernels) return true;
    trouble =
        fmt::format("the checkpoint was trained with other kernels than there are now, {} instead of {}",
                    engine_->kernels(), kernels.empty() ? "unknown ones" : kernels);
    engine_.reset();
    return false;
  }

  std::unique_ptr<Engine> make_engine(const std::string& kernels) {
    const std::uint64_t seed = weights_seed(config_.seed, config_.repeat);
    threads_ = options_.threads();
    return options_.make_engine(
        *run_.network, {.device = run_.device,
                        .threads = threads_,
                        .batch_size = config_.batch_size,
                        .optimizer = scheduled_optimizer(resolve_optimizer(config_.optimizer), schedule_),
                        .transform = run_.data->transform,
                        .seed = seed,
                        .loss = resolve_loss(config_.loss),
                        .clip_norm = config_.clip_norm,
                        .kernels = kernels,
                        .placement = config_.placement,
                        .precision = config_.precision,
                        .deterministic = config_.deterministic});
  }

  // Makes the engine do now what it does only once, and leaves it no rest for the first epoch.
  std::optional<Placement> prepare_engine() {
    std::vector<Samples> evaluation;
    for (const Samples* part : {&run_.data->validation, &run_.data->test})
      if (part->count > 0) evaluation.push_back(*part);
    const std::optional<Placement> placement = engine_->prepare(run_.data->train, evaluation);
    // Such an engine reads rows of the set: there is nothing to prepare ahead.
    loader_.set_num_workers(placement == Placement::kDevice ? 0 : config_.num_workers);
    return placement;
  }

  void train() {
    const double begin = options_.clock();
    if (!engine_) engine_ = make_engine(resumed_ ? resumed_->kernels : "");
    if (const std::string kernels = engine_->kernels(); !kernels.empty()) log_->info("kernels: {}", kernels);
    if (resumed_) {
      if (engine_->kernels() != resumed_->kernels)
        throw DeviceError(fmt::format("{}: the kernels of the checkpoint could not be had, start again",
                                      run_.device.name()));
      restore_state(*engine_, *resumed_);
      resumed_.reset();
    } else if (!run_.weights.parameters.empty()) {
      engine_->set_parameters(run_.weights.parameters);
      engine_->set_buffers(run_.weights.buffers);
    } else {
      const std::uint64_t seed = weights_seed(config_.seed, config_.repeat);
      engine_->set_parameters(initial_parameters(*run_.network, seed));
    }
    const std::optional<Placement> placement = prepare_engine();
    const double seconds = options_.clock() - begin;
    manager_.track_setup(seconds, placement);
    log_->info("set up in {:.3g} s{}", seconds,
               placement ? fmt::format(", samples on the {}", placement_name(*placement)) : "");
    for (; epoch_ < config_.epochs; ++epoch_) train_epoch();
    measure_test();
    if (config_.log.predictions) log_predictions();
  }

  // The number of threads changes no bit, so neither does an engine with others that goes on.
  void follow_threads() {
    if (options_.threads() == threads_) return;
    const TrainingState state = capture_state(*engine_);
    engine_ = make_engine(state.kernels);
    restore_state(*engine_, state);
    prepare_engine();
    log_->info("goes on with {} threads", threads_);
  }

  void train_epoch() {
    follow_threads();
    observer_.begin_epoch(epoch_);
    engine_->take_device_seconds();
    manager_.begin_epoch();
    manager_.track_learning_rate(step_values(0).learning_rate);
    loader_.begin_epoch(static_cast<std::uint32_t>(epoch_));
    std::int64_t batch = 0;
    for (const Batch* samples = loader_.next(); samples != nullptr; samples = loader_.next(), ++batch) {
      const StepValues values = step_values(batch);
      if (values.momentum) engine_->set_momentum(*values.momentum);
      const bool logged = config_.log.batches > 0 && steps_ % config_.log.batches == 0;
      if (logged) track_totals(batch);  // so that the next are this batch's alone
      engine_->train(*samples, values.learning_rate);
      ++untracked_;
      if (logged || untracked_ >= engine_->batches_between_totals()) {
        const Totals totals = track_totals(batch + 1);
        if (logged) manager_.track_batch(totals, steps_);
      }
      ++steps_;
      look_around();
    }
    track_totals(batch);
    manager_.end_training();
    if (const auto seconds = engine_->take_device_seconds()) manager_.track_device_seconds(*seconds);
    if (epoch_ == 0 && config_.log.graph) profile();
    if (config_.log.histograms) manager_.track_parameters(*engine_);
    if (run_.data->validation.count > 0) {
      manager_.track_validation(evaluate(run_.data->validation, "validation"));
    }
    start_checkpoint(manager_.end_epoch());
  }

  // Takes the sums of the batches before `end` that are not tracked yet.
  Totals track_totals(std::int64_t end) {
    if (untracked_ == 0) return {};
    const Totals totals = engine_->take_totals();
    if (!std::isfinite(totals.loss)) {
      const std::string batches = untracked_ == 1
                                      ? fmt::format("batch {}", end - 1)
                                      : fmt::format("one of batches {} to {}", end - untracked_, end - 1);
      throw TrainingError(fmt::format("{} at epoch {}, {} (from 0): the loss is {}; try a smaller lr than {}",
                                      kDiverged, epoch_, batches, totals.loss, config_.lr));
    }
    manager_.track(totals);
    observer_.batch(totals, static_cast<std::size_t>(std::exchange(untracked_, 0)));
    return totals;
  }

  StepValues step_values(std::int64_t batch) const {
    return values_at(schedule_, config_.lr,
                     {.epoch = epoch_,
                      .step = batch,
                      .epochs = config_.epochs,
                      .steps_per_epoch = static_cast<std::int64_t>(loader_.batch_count())});
  }

  void profile() {
    const double begin = options_.clock();
    const std::size_t most = run_.device.type == DeviceType::kCpu ? kProfiledOnCpu : kProfiledOnCuda;
    DataLoader loader(run_.data->train, {.batch_size = std::min(config_.batch_size, most)});
    loader.begin_epoch(0);
    if (const Batch* batch = loader.next()) {
      manager_.track_profile(engine_->profile(*batch), static_cast<std::int64_t>(batch->size()));
    }
    manager_.add_logging_seconds(options_.clock() - begin);
  }

  Totals evaluate(const Samples& samples, std::string_view part) {
    observer_.phase(part);
    DataLoader loader(samples, {.batch_size = config_.batch_size});
    loader.begin_epoch(0);
    while (const Batch* batch = loader.next()) {
      engine_->evaluate(*batch);
      observer_.phase(part);
      look_around();
    }
    return engine_->take_totals();
  }

  void measure_test() {
    if (run_.data->test.count == 0) return;
    const Totals totals = evaluate(run_.data->test, "test");
    const auto samples = static_cast<double>(totals.samples);
    manager_.track_metric("test_loss", totals.loss / samples);
    manager_.track_metric("test_accuracy", static_cast<double>(totals.correct) / samples);
  }

  void log_predictions() {
    const Dataset& data = *run_.data;
    const bool has_validation = data.validation.count > 0, has_test = data.test.count > 0;
    const Samples& samples = has_validation ? data.validation : has_test ? data.test : data.train;
    observer_.phase("predictions");
    const std::size_t classes = element_count(run_.network->output());
    std::vector<float> outputs(samples.count * classes);
    std::size_t done = 0;
    DataLoader loader(samples, {.batch_size = config_.batch_size});
    loader.begin_epoch(0);
    while (const Batch* batch = loader.next()) {
      engine_->predict(*batch, std::span(outputs).subspan(done * classes, batch->size() * classes));
      done += batch->size();
      observer_.phase("predictions");
      look_around();
    }
    manager_.track_predictions(samples, outputs, data.class_names,
                               has_validation ? "validation"
                               : has_test     ? "test"
                                              : "training");
  }

  void end(RunStatus status, const std::string& reason) {
    finish_epoch();
    const auto& metrics = manager_.record().metrics;
    if (metrics.contains("test_loss"))
      log_->info("test: loss {:.6g}, accuracy {:.6g}", metrics.at("test_loss"), metrics.at("test_accuracy"));
    if (status == RunStatus::kCompleted) {
      log_->info("completed");
    } else {
      log_->log(status == RunStatus::kFailed ? spdlog::level::err : spdlog::level::warn, "{}: {}",
                to_string(status), reason);
    }
    manager_.end_run(status, reason);
  }

  // The training goes on while the checkpoint is written. It is not synced: whoever keeps the sweep does
  // that.
  void start_checkpoint(const EpochRecord& epoch) {
    finish_epoch();
    const double begin = options_.clock();
    if (!checkpoint_) {
      checkpoint_.emplace(manager_.run_directory() / kCheckpointFile, *run_.network,
                          [&manager = manager_] { manager.flush(); });
    }
    checkpoint_->start(capture_state(*engine_), manager_.record(), manager_.position(steps_),
                       config_.epochs == 1);
    unfinished_ = epoch;
    manager_.add_logging_seconds(options_.clock() - begin);
  }

  // Waits for the checkpoint of the last epoch, if there is one on its way. With it the epoch is finished.
  void finish_epoch() {
    if (!unfinished_) return;
    const double begin = options_.clock();
    const EpochRecord epoch = *std::exchange(unfinished_, std::nullopt);
    checkpoint_->finish();
    manager_.add_logging_seconds(options_.clock() - begin);
    log_->info("epoch {}: loss {:.6g}, accuracy {:.6g}{}, {:.3g} s, {} images/s", epoch.epoch, epoch.loss,
               epoch.accuracy,
               epoch.validation_loss
                   ? fmt::format(", validation loss {:.6g}, accuracy {:.6g}", *epoch.validation_loss,
                                 epoch.validation_accuracy.value_or(0))
                   : "",
               epoch.epoch_seconds, human_count(epoch.images_per_second));
    observer_.end_epoch(epoch);
  }

  // Between batches, also of an evaluation.
  void look_around() {
    if (unfinished_ && checkpoint_->is_ready()) finish_epoch();
    if (const int signal = options_.stop_requested(); signal != 0) throw Stopped{signal};
  }

  const PreparedRun& run_;
  const RunConfig& config_;
  RunManager& manager_;
  TrainingObserver& observer_;
  const TrainerOptions& options_;
  const ScheduleOptions schedule_ = resolve_schedule(config_.schedule);
  DataLoader loader_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<spdlog::logger> log_;
  std::optional<CheckpointWriter> checkpoint_;
  std::optional<EpochRecord> unfinished_;  // trained and recorded, but for its checkpoint
  int threads_ = 0;
  int epoch_ = 0;
  std::int64_t untracked_ = 0;            // batches since the last take_totals()
  std::int64_t steps_ = 0;                // batches trained in this run
  std::optional<TrainingState> resumed_;  // to begin with
};

}  // namespace

bool train_run(const PreparedRun& run, RunManager& manager, TrainingObserver& observer,
               const TrainerOptions& options) {
  return RunTrainer(run, manager, observer, options).run();
}

std::uint64_t weights_seed(std::uint64_t seed, std::uint32_t repeat) {
  if (repeat == 0) return seed;
  const auto mixed = philox4x32({repeat, 0, 0, static_cast<std::uint32_t>(RandomUse::kInitialisation)},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return static_cast<std::uint64_t>(mixed[1]) << 32 | mixed[0];
}

Run describe_run(const RunConfig& config, const Device& device, int jobs) {
  return {.name = config.name,
          .params = config.params,
          .device = device.name(),
          .loss = config.loss,
          .log = config.log,
          .config = config.resolved,
          .jobs = jobs};
}

}  // namespace sweep
