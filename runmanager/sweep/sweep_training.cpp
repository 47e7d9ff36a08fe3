// How a sweep trains its runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/threads.h"
#include "core/json/json_text.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/make_run_kind.h"
#include "runmanager/sweep/sweep_runner_steps.h"
#include "runmanager/sweep/worker_pool.h"

namespace sweep {

void SweepRunner::train_runs() {
  // Training samples times epochs: what the progress display measures the time left by.
  double work = 0, epochs = 0;
  for (const ScheduledRun& run : runs_) {
    work += run.needs.work_per_epoch * run.config->epochs;
    epochs += run.config->epochs;
  }
  if (epochs > 0)
    work_per_epoch_ = work / epochs;
  else if (growing_)
    work_per_epoch_ = kind_->needs(sweep_.runs.front()).work_per_epoch;
  for (std::size_t i = 0; i < existing_.size(); ++i)
    if (is_kept(i)) work += work_per_epoch_ * sweep_.runs[i].epochs;
  if (sweep_.search)
    work = work_per_epoch_ *
           TrialSchedule(*sweep_.search, sweep_.runs.size(), sweep_.runs.front().epochs).total_epochs();
  std::size_t failed = 0;  // of the runs that are kept
  for (std::size_t i = 0; i < existing_.size(); ++i)
    failed += is_kept(i) && records_[i].status == RunStatus::kFailed ? 1 : 0;
  recorder_.emplace(
      SweepRecorderOptions{
          .directory = directory_->path(),
          .name = directory_->name(),
          .keys = sweep_.keys,
          .clock = environment_.clock,
          .terminal = environment_.terminal,
          .quiet = options_.quiet,
          .json = options_.json,
          .total_runs = growing_ ? total_trials(*sweep_.search, sweep_.runs.front().epochs) : 0,
          .work = work,
          .work_per_epoch = work_per_epoch_,
          .goals = goals_of(sweep_),
          .shared = options_.join},
      sweep_.runs, std::move(records_));
  for (std::size_t i = 0; i < existing_.size(); ++i)
    if (find_run(unavailable_, i) == nullptr) know_work(existing_[i], sweep_.runs[i]);
  for (const std::string& remark : kind_->remarks()) recorder_->progress().message(remark);
  for (const std::string& change : changes_) recorder_->progress().message(change);
  recorder_->progress().keep_runs(
      static_cast<std::size_t>(std::ranges::count(existing_, RunFate::kKept, &ExistingRun::fate)));
  if (failed > 0)
    recorder_->progress().message(fmt::format("{} of them {} failed, and {} left alone", failed,
                                              failed == 1 ? "has" : "have", failed == 1 ? "is" : "are"));
  try {
    options_.join ? train_with_others() : train_alone();
    check_directory();
  } catch (const DeviceError&) {
    recorder_->try_save();
    throw;
  } catch (const IoError&) {
    // If the whole directory is gone, that is the reason, whichever file was missed first.
    check_directory();
    recorder_->try_save();
    throw;
  }
  has_failed_run_ = recorder_->has_failed_run();
  cost_ = recorder_->cost();
  means_ = recorder_->means();
  records_ = recorder_->take_records();
  recorder_.reset();
}

void SweepRunner::know_work(const ExistingRun& existing, const RunConfig& config) {
  const Lineage lineage = lineage_of(config.resolved);
  const int copied = lineage.empty() ? 0 : lineage.back().until;  // another one's work
  int epochs = copied;
  if (existing.fate == RunFate::kKept) epochs = config.epochs;
  if (existing.fate == RunFate::kContinued) epochs = reached_epoch(*existing.record);
  recorder_->progress().add_work(work_per_epoch_ * copied);
  recorder_->progress().know_work(config.index + 1, work_per_epoch_ * epochs, true);
}

void SweepRunner::check_directory() const {
  if (directory_->exists()) return;
  throw IoError(
      fmt::format("{}: was removed or renamed while the sweep was running; the same command starts anew",
                  directory_->path().string()));
}

void SweepRunner::skip(const ScheduledRun& run) {
  recorder_->skip_run(*run.config, options_.strict ? RunStatus::kFailed : RunStatus::kSkipped,
                      *run.needs.unavailable);
}

SchedulerOptions SweepRunner::scheduler_options(std::size_t slots) {
  constexpr int kRetriesOfLostTrials = 2;
  return {
      .slots = slots,
      .one_run_per_device = options_.jobs == 0,
      .gpus = gpus_,
      .threads = options_.threads,
      .cores = available_cores(),
      .retry = options_.retry,
      // What other trials do depends on it, and a process that was killed is no result.
      .retry_lost = sweep_.search ? kRetriesOfLostTrials : 0,
      .fail_fast = options_.fail_fast,
      .timeout = options_.timeout == 0 ? 0 : options_.timeout + kind_->timeout_seconds(sweep_.runs.front()),
      .stall_seconds = environment_.stall_seconds,
      .stop_seconds = kind_->stop_seconds(sweep_.runs.front()),
      .clock = environment_.clock,
      .stop_requested = environment_.stop_requested,
      .others_here = [this] { return options_.join ? directory_->others_here() : 0; },
      .check_directory = [this] { check_directory(); }};
}

void SweepRunner::train(RunQueue& queue) {
  if (runs_.empty() && !growing_) return;
  const SchedulerOptions options = scheduler_options(slots());
  if (environment_.worker_command.empty()) {
    InProcessExecutor executor(make_kind_worker(sweep_.runs.front(), kind_->datasets()),
                               {.directory = directory_->path(),
                                .make_engine = environment_.make_engine,
                                .clock = environment_.clock,
                                .stop_requested = environment_.stop_requested,
                                .threads = {}});
    was_stopped_ = schedule_runs(queue, executor, options, *recorder_);
    return;
  }
  // The samples move to memory that the workers see, so this process drops its own.
  const std::vector<SharedDataset> datasets = kind_->share_datasets();
  // The lock is inherited, so that nobody else writes to the directory before the last worker is gone.
  WorkerPool executor({environment_.worker_command, {directory_->lock_fd()}}, directory_->path(), datasets,
                      options.slots, options_.timeout);
  was_stopped_ = schedule_runs(queue, executor, options, *recorder_);
}

void SweepRunner::train_alone() {
  for (const ScheduledRun& run : unavailable_) skip(run);
  std::optional<TrialRuns> trials;
  if (sweep_.search) trials.emplace(sweep_, runs_, *recorder_, trial_options());
  RunQueue queue(runs_, *recorder_, trials ? &*trials : nullptr);
  train(queue);
  if (trials) end_search(*trials);
  recorder_->finish();
}

TrialRunsOptions SweepRunner::trial_options() {
  return {.add = [this](RunConfig config) { return add_trial(std::move(config)); },
          .is_there =
              [this](const RunConfig& config) {
                const RunFate fate = find_existing_runs(directory_->path(), {&config, 1}, kind_->identities(),
                                                        false, Adopted::kFormerNames)[0]
                                         .fate;
                return fate == RunFate::kKept || fate == RunFate::kContinued;
              },
          .prune = [this](std::size_t run, const std::string& reason) { prune(run, reason); },
          .keep_start = [this](std::size_t parent, int epoch,
                               const RunConfig& copy) { return keep_start(parent, epoch, copy); }};
}

void SweepRunner::prune(std::size_t run, const std::string& reason) {
  const RunConfig& config = sweep_.runs[run];
  const std::optional<RunLock> lock =
      options_.join ? RunLock::try_lock(directory_->path() / config.name) : std::nullopt;
  if (options_.join && !lock) return;  // The process that trained it does it.
  if (lock) shared_queue_->collect();
  RunRecord record = recorder_->record(run);
  if (std::exchange(record.status, RunStatus::kPruned) == RunStatus::kPruned) return;
  record.error = reason;
  recorder_->record_end(config, std::move(record));
  recorder_->end_run(run);
}

void SweepRunner::end_search(TrialRuns& trials) {
  if (kept_trials_ > 0 || lacks_trials_ || (options_.join && growing_)) write_trials();
  recorder_->progress().keep_runs(std::exchange(kept_trials_, 0));
  search_end_ = trials.outcome();
  if (was_stopped_ || environment_.stop_requested() != 0 || options_.join) return;
  if (const std::string text = trials_left_out_text(earlier_, sweep_.runs); !text.empty())
    recorder_->progress().message(text);
}

void SweepRunner::write_growing_file() {
  const double begin = environment_.clock();
  lacks_trials_ = begin < next_write_;
  if (lacks_trials_) return;
  write_trials();
  const double end = environment_.clock();
  constexpr double kPausePerWrite = 19;
  next_write_ = end + kPausePerWrite * (end - begin);
}

void SweepRunner::write_trials() {
  if (!options_.join) return write_sweep_file();
  directory_->write_results([this] {
    if (read_json_file(directory_->path() / kSweepFile).at("runs").size() < sweep_.runs.size())
      write_sweep_file();
  });
}

int SweepRunner::last_generation() const {
  int last = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_->path())) {
    if (const std::optional<RunRecord> start = kind_->start_of(entry.path()))
      last = std::max(last, static_cast<int>(start->epochs.size()));
  }
  return last - last % sweep_.search->interval;  // A program may pause late.
}

void SweepRunner::keep_if_decided(ExistingRun& existing) const {
  if (!sweep_.search || sweep_.search->method != SearchMethod::kPopulation) return;
  if (existing.fate != RunFate::kContinued || existing.record->status != RunStatus::kFailed) return;
  if (reached_epoch(*existing.record) < last_generation()) existing.fate = RunFate::kKept;
}

std::vector<ExistingRun> SweepRunner::existing_runs(std::span<const RunConfig> runs, bool retry_failed,
                                                    Adopted adopted) {
  std::vector<ExistingRun> existing =
      find_existing_runs(directory_->path(), runs, kind_->identities(), retry_failed, adopted);
  for (ExistingRun& run : existing) keep_if_decided(run);
  if (!options_.replace) refuse_runs_in_the_way(directory_->path(), runs, existing);
  return existing;
}

ExistingRun SweepRunner::make_room_for(const RunConfig& config) {
  std::vector<ExistingRun> existing =
      existing_runs({&config, 1}, options_.retry_failed, Adopted::kFormerNames);
  make_room(directory_->path(), {&config, 1}, existing);
  return std::move(existing[0]);
}

std::optional<ScheduledRun> SweepRunner::add_trial(RunConfig config) {
  const RunConfig& added = growing_->runs.emplace_back(std::move(config));
  const ExistingRun existing = make_room_for(added);
  RunRecord record = known_record(existing, added).value_or(new_record(added));
  know_work(existing, added);
  if (existing.fate == RunFate::kKept) {
    recorder_->add_run(std::move(record));
    ++kept_trials_;
    return std::nullopt;
  }
  write_growing_file();
  recorder_->progress().keep_runs(std::exchange(kept_trials_, 0));
  try {
    kind_->check(added, sweep_.file);
    ScheduledRun run = scheduled(added);
    record.device = run.needs.device.name();
    record.provenance = std::move(run.needs.provenance);
    recorder_->add_run(std::move(record));
    if (!run.needs.unavailable) return run;
    if (!options_.join) skip(run);
  } catch (const ConfigError& error) {
    // A network that does not fit its data, say: the point is as bad as can be.
    record.device = environment_.parse_device(added.device).name();
    recorder_->add_run(std::move(record));
    std::optional<RunLock> lock = wait_for_lock(added.name, [] { return false; });
    if (options_.join && !lock) return std::nullopt;
    recorder_->skip_run(added, RunStatus::kFailed, error.what());
    if (lock) lock->note_failure(directory_->start());
  }
  return std::nullopt;
}

std::optional<RunLock> SweepRunner::wait_for_lock(const std::string& run,
                                                  const std::function<bool()>& is_done) {
  while (options_.join && !is_done() && environment_.stop_requested() == 0) {
    if (std::optional<RunLock> lock = RunLock::try_lock(directory_->path() / run)) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::nullopt;
}

// Another process that shares the sweep may do the same. It trains the parent on, for which it holds the
// lock, only once the start is kept.
bool SweepRunner::keep_start(std::size_t parent, int epoch, const RunConfig& copy) {
  const std::filesystem::path from = directory_->path() / sweep_.runs[parent].name,
                              to = directory_->path() / copy.name;
  const RunFate fate = make_room_for(copy).fate;
  if (fate == RunFate::kKept || (fate == RunFate::kContinued && kind_->state_of(to))) return true;
  const RunIdentity identity = kind_->identity(sweep_.runs[parent]);
  // If it was trained to the next decision, it is another state.
  const int latest = kind_->may_pause_late() ? epoch + std::max(1, sweep_.search->interval - 1) : epoch;
  const auto is_state = [&](int epochs) { return epochs >= epoch && epochs <= latest; };
  const auto is_kept = [&] {
    const std::optional<RunRecord> start = kind_->start_of(to);
    return start && is_state(static_cast<int>(start->epochs.size())) &&
           differences(identity_of(*start), identity).empty();
  };
  const std::optional<RunLock> lock = wait_for_lock(sweep_.runs[parent].name, is_kept);
  if (is_kept()) return true;
  if (options_.join && !lock) return false;
  const std::optional<RunRecord> state = kind_->state_of(from);
  const int epochs = state ? static_cast<int>(state->epochs.size()) : 0;
  if (epochs > latest)
    throw DataError(fmt::format(
        "{}: continues {} after epoch {}, whose state is gone: it was trained on, to epoch {}. {}--fresh "
        "starts the search anew, in another directory",
        to.string(), sweep_.runs[parent].name, epoch, epochs,
        kind_->may_pause_late() ? "Want a program that ends after the step $SWEEP_UNTIL. " : ""));
  if (is_state(epochs)) {
    kind_->keep_start(from, to);
    return true;
  }
  // A power cut has cost its last checkpoint, so it is trained to this epoch once more.
  std::error_code ignored;
  std::filesystem::remove(from / kRunRecordFile, ignored);
  RunRecord record = recorder_->record(parent);
  record.epochs.clear();
  recorder_->update(parent, std::move(record));
  return false;
}

int runs_at_once(int jobs, std::size_t runs) {
  const auto wanted = static_cast<std::size_t>(jobs > 0 ? jobs : available_cores());
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(runs, 1)));
}

std::size_t SweepRunner::slots() const {
  if (environment_.worker_command.empty()) return 1;
  // How many could be trained at once, if there were slots for all.
  std::size_t runs = runs_.size();
  if (growing_ && sweep_.search->method == SearchMethod::kPopulation)
    runs = sweep_.search->trials;
  else if (growing_)
    runs = std::min(sweep_.search->at_once, total_trials(*sweep_.search, sweep_.runs.front().epochs));
  const auto at_once = static_cast<std::size_t>(runs_at_once(options_.jobs, runs));
  return std::min(at_once, gpus_.max_runs().value_or(runs));
}

}  // namespace sweep
