#include "runmanager/sweep/sweep_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/prepared_run.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

// The results hold all runs. In a sweep of many short runs, writing them after each would take longer than
// the training, so they are written only as often as takes this fraction of the time.
constexpr double kTimeForResults = 0.02;

// How often the file is written that `sweep watch` reads. Writing it takes a tenth of a millisecond or so.
constexpr double kSecondsBetweenProgress = 0.9;

// Whether the start that finished a run may have been killed before the run was on the disk. Syncing all of
// thousands of finished runs could take a minute, and the kernel has long written the old ones by itself,
// which it does within half a minute.
bool may_be_unsynced(const std::filesystem::path& run_directory) {
  std::error_code error;
  if (std::filesystem::exists(run_directory / kPreviousCheckpointFile, error)) return true;
  const auto written = std::filesystem::last_write_time(run_directory / kRunRecordFile, error);
  return !error && std::filesystem::file_time_type::clock::now() - written < std::chrono::minutes(2);
}

// Whether the run has come to the end that it was to have, so that nothing older is needed any more.
bool is_final(const RunRecord& record) {
  return record.status == RunStatus::kCompleted || record.status == RunStatus::kPruned;
}

constexpr std::chrono::seconds kBetweenRounds{10};

// What is synced before the rest: events.
struct Files {
  std::vector<std::filesystem::path> events, others;
};

void add_files(const std::filesystem::path& directory, Files& files) {
  std::error_code error;
  for (const auto& entry : directory_entries(directory)) {
    const std::filesystem::path& path = entry.path();
    if (!entry.is_regular_file(error) || path.extension() == ".tmp") continue;
    (tbwriter::is_event_file_name(path.filename().string()) ? files.events : files.others).push_back(path);
  }
}

}  // namespace

DiskSync::DiskSync(std::filesystem::path directory) : directory_(std::move(directory)) {
  const BlockSignals block;
  thread_ = start_thread("syncs files to the disk", [this] { loop(); });
}

DiskSync::~DiskSync() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DiskSync::begin_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  running_.insert(run);
  ended_.erase(run);
}

void DiskSync::end_run(const std::string& run) {
  const std::lock_guard lock(mutex_);
  running_.erase(run);
  ended_.insert(run);
}

void DiskSync::finish() {
  sync_round(Runs::kAll);
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw IoError(error_);
}

void DiskSync::sync_round(Runs which) {
  const std::lock_guard round(round_);
  std::set<std::string> runs, ended;
  {
    const std::lock_guard lock(mutex_);
    // Runs that have ended since the last round are synced in this one and then forgotten.
    ended.swap(ended_);
    runs = ended;
    if (which == Runs::kAll) runs.insert(running_.begin(), running_.end());
  }
  Files files;
  add_files(directory_, files);
  for (const std::string& run : runs) add_files(directory_ / run, files);
  // The events come first: a checkpoint says how far they reach, and a power cut must not leave it without
  // them.
  sync_files(files.events);
  sync_files(files.others);
  // The directory may be new, and the one above it.
  const std::filesystem::path above = directory_of(directory_);
  sync_directory(above);
  sync_directory(directory_of(above));
  // The checkpoints with the usual name are safe now. If a power cut brings one of these back, it does no
  // harm.
  const std::lock_guard lock(mutex_);
  std::error_code error;
  for (const std::string& run : ended) {
    // A run that goes on again may have a newer one that is not.
    if (!running_.contains(run)) std::filesystem::remove(directory_ / run / kPreviousCheckpointFile, error);
  }
}

void DiskSync::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kBetweenRounds, [this] { return closing_; });
    if (closing_) return;
    lock.unlock();
    std::string error;
    try {
      sync_round(Runs::kEnded);
    } catch (const std::exception& failure) {  // std::bad_alloc, too: it must not leave the thread.
      error = failure.what();
    }
    lock.lock();
    if (error_.empty()) error_ = error;
  }
}

std::string cost_text(const SweepCost& cost) {
  const double beside = cost.seconds - cost.training_seconds;
  // Runs beside each other take less together than one after the other.
  const bool at_once = cost.seconds > 1.05 * cost.elapsed_seconds;
  return fmt::format(
      "{} took {}{}; besides training {} per run ({:.2f}%), logs and checkpoints are {:.2f}%",
      counted(cost.runs, "run"), human_seconds(cost.elapsed_seconds),
      at_once ? fmt::format(", the sum of their times is {}", human_seconds(cost.seconds)) : "",
      human_seconds(std::max(0.0, beside) / static_cast<double>(cost.runs)), 100 * beside / cost.seconds,
      100 * cost.logging_seconds / cost.seconds);
}

SweepRecorder::SweepRecorder(const SweepRecorderOptions& options, std::span<const RunConfig> runs,
                             std::vector<RunRecord> records)
    : options_(options),
      aggregates_(options.directory, runs),
      progress_(make_progress({.terminal = options.terminal,
                               .clock = options.clock,
                               .sweep = options.name,
                               .runs = std::max(runs.size(), options.total_runs),
                               .work = options.work,
                               .json = options.json,
                               .quiet = options.quiet})),
      disk_(options.directory),
      begin_(options.clock()) {
  progress_->judge_by(options.goals);
  for (RunRecord& record : records) {
    if (is_final(record) && may_be_unsynced(options_.directory / record.name)) disk_.end_run(record.name);
    progress_->consider(record);
    records_.push_back(std::move(record));
  }
  if (options_.shared) return;
  save();
  write_means();
}

void SweepRecorder::write_means() { aggregates_.update_all(records()); }

SweepRecorder::~SweepRecorder() {
  if (options_.shared) return;
  std::error_code ignored;
  std::filesystem::remove(options_.directory / kProgressFile, ignored);
}

void SweepRecorder::begin_run(std::size_t run, RunRecord record) {
  const RunRecord& earlier = this->record(run);
  begins_[run] = {options_.clock(), earlier.run_seconds.value_or(0),
                  earlier.run_seconds ? earlier.logging_seconds : 0};
  disk_.begin_run(record.name);
  progress_->start_run(run + 1, record);
  update(run, std::move(record));
}

// Those that an earlier start or attempt has trained.
void SweepRecorder::set_finished_epochs(std::size_t run, const std::vector<EpochRecord>& epochs) {
  RunRecord& record = records_.at(run);
  record.epochs.clear();
  record.untrained.reset();
  for (const EpochRecord& epoch : epochs) add_epoch(record, epoch);
  // Also those of the run that a member of a population is a copy of.
  const auto begin = begins_.find(run);
  if (begin != begins_.end() && !epochs.empty())
    begin->second.run_seconds = epochs.back()["run_seconds"].value_or(0);
}

void SweepRecorder::take(std::size_t run, const RunEvent& event) {
  if (const auto* plan = std::get_if<RunPlan>(&event)) set_finished_epochs(run, plan->finished_epochs);
  if (const auto* epoch = std::get_if<EpochRecord>(&event)) {
    RunRecord& record = records_.at(run);
    const int last = epoch->epoch > 0 && !record.epochs.empty() ? record.epochs.back().epoch : 0;
    if (epoch->epoch == last && last > 0) record.epochs.pop_back();  // A program has reported more of it.
    if (epoch->epoch < last)
      record.epochs = every_second(record.epochs);  // As its worker has left out steps.
    add_epoch(record, *epoch);
  }
  progress_->report(run + 1, event);
}

void SweepRecorder::take_end(std::size_t run, TrainedRun trained) {
  RunRecord& record = records_.at(run);
  if (!trained.changes_epochs) {
    trained.record.epochs = std::move(record.epochs);
    trained.record.untrained = std::move(record.untrained);
  }
  trained.record.config = std::move(record.config);
  record.provenance.update(trained.record.provenance);
  trained.record.provenance = std::move(record.provenance);
  record = std::move(trained.record);
}

double SweepRecorder::earlier_seconds(std::size_t run) const {
  return std::max(record(run).run_seconds.value_or(0), begins_.at(run).run_seconds);
}

void SweepRecorder::update(std::size_t run, RunRecord record) { records_.at(run) = std::move(record); }

void SweepRecorder::end_run(std::size_t run) {
  disk_.end_run(record(run).name);
  if (!options_.shared) aggregates_.update(run, records());
  progress_->end_run(run + 1, record(run));
  if (record(run).status == RunStatus::kCompleted) count_cost(run);
  has_failed_run_ |= record(run).status == RunStatus::kFailed;
  begins_.erase(run);
  // Not earlier: until here the old run is the only whole one.
  if (is_final(record(run)) && has_run_set_aside(options_.directory, record(run).name)) {
    disk_.finish();
    remove_runs_set_aside(options_.directory, record(run).name);
  }
}

void SweepRecorder::pause_run(std::size_t run) {
  disk_.end_run(record(run).name);
  progress_->pause_run(run + 1);
  count_cost(run);
}

void SweepRecorder::leave_run(std::size_t run) {
  RunRecord& left = records_.at(run);
  progress_->message(fmt::format("{} was taken over by another process", left.name));
  left.status = RunStatus::kPending;
  left.epochs.clear();
  left.untrained.reset();
  left.error.reset();
  begins_.erase(run);
  pause_run(run);
}

void SweepRecorder::keep_run(std::size_t run, RunRecord record) {
  // Its directory may have another name since.
  record.name = this->record(run).name;
  progress_->keep_runs(1);
  // UTC times of one format sort as texts.
  progress_->know_work(run + 1, options_.work_per_epoch * static_cast<double>(record.epochs.size()),
                       record.ended < started_);
  progress_->consider(record);
  update(run, std::move(record));
}

void SweepRecorder::add_run(RunRecord record) {
  if (is_final(record) && may_be_unsynced(options_.directory / record.name)) disk_.end_run(record.name);
  progress_->consider(record);
  records_.push_back(std::move(record));
}

void SweepRecorder::skip_run(const RunConfig& run, RunStatus status, const std::string& reason) {
  RunRecord& record = records_.at(run.index);
  record_skipped_run(recorder_options(run.index), describe_run(run, record.device), status, reason, record);
  end_run(run.index);
}

void SweepRecorder::record_end(const RunConfig& run, RunRecord record) {
  sweep::record_end(recorder_options(run.index), describe_run(run, record.device), record);
  update(run.index, std::move(record));
}

RecorderOptions SweepRecorder::recorder_options(std::size_t run) const {
  return {.directory = options_.directory,
          .clock = options_.clock,
          .provenance = record(run).provenance,
          .survives = Survives::kKill,
          .shared = options_.shared};
}

void SweepRecorder::count_cost(std::size_t run) {
  const auto found = begins_.find(run);
  if (found == begins_.end()) return;
  const Begin begin = found->second;
  begins_.erase(found);
  const double seconds = options_.clock() - begin.seconds;
  // The record of a resumed run also counts the time of earlier starts, so it can exceed this start's.
  const double run_seconds =
      std::clamp(record(run).run_seconds.value_or(0) - begin.run_seconds, 0.0, seconds);
  // Where what those took for logs is not known, it is their part of the whole.
  const double all_logging = record(run).logging_seconds,
               logging_seconds = begin.run_seconds > 0 && begin.logging_seconds == 0
                                     ? all_logging * run_seconds / record(run).run_seconds.value_or(1)
                                     : all_logging - begin.logging_seconds;
  if (counted_.insert(run).second) ++cost_.runs;
  cost_.seconds += seconds;
  const double own_logging = std::clamp(logging_seconds, 0.0, run_seconds);
  cost_.training_seconds += run_seconds - own_logging;
  cost_.logging_seconds += own_logging;
}

void SweepRecorder::save(const std::function<void()>& refresh) {
  const double begin = options_.clock();
  if (refresh) refresh();
  save_results(options_.directory / kResults, records_, options_.name, options_.keys, Survives::kKill);
  const double end = options_.clock();
  next_save_ = end + (end - begin) / kTimeForResults;
}

void SweepRecorder::save_if_due(const std::function<void()>& refresh) {
  progress_->pass_time();
  write_progress();
  if (options_.clock() >= next_save_) save(refresh);
}

// Nothing depends on this file, so the sweep goes on without it.
void SweepRecorder::write_progress() {
  const double now = options_.clock();
  if (options_.shared || now < next_progress_) return;
  next_progress_ = now + kSecondsBetweenProgress;
  try {
    write_file_atomically(options_.directory / kProgressFile, json_text(to_json(progress_->state())),
                          Survives::kKill);
  } catch (const IoError&) {
  }
}

void SweepRecorder::finish() {
  save();
  disk_.finish();
  cost_.elapsed_seconds = options_.clock() - begin_;
}

void SweepRecorder::try_save() {
  try {
    save();
  } catch (const IoError&) {
  }
}

}  // namespace sweep
