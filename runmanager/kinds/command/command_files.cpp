#include "runmanager/kinds/command/command_files.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::literals::operator""_json_pointer;

constexpr const char* kProgramLock = ".program.lock";
constexpr const char* kChangesFile = "git.diff";
// Our file may come after the program's, whose points it must not make void.
constexpr std::int64_t kNoPurge = CommandFiles::kMaxEventStep + 1;
// .program.lock does. A keeper would inherit a lock on the events, and hold it when they are written anew.
constexpr bool kLocks = false;

// Whether the files of a run whose record is missing or damaged are this one's, and tell how far it is.
bool is_told_by_others(const fs::path& run, const RunConfig& config) {
  const auto has_same_params = [&] {
    return fs::exists(run / kParamsFile) && read_file(run / kParamsFile) == params_text(config);
  };
  return fs::exists(run / kMetricsFile) && (!fs::exists(run / kRunRecordFile) || has_same_params());
}

// What differs from the commit that run.json names: with both, the program is as it was.
void keep_changes(const fs::path& run, const RunRecord& record, const CommandSpec& spec) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::error_code ignored;
  fs::remove(run / kChangesFile, ignored);
  if (!record.provenance.value("/git/changed"_json_pointer, false)) return;
  // Whatever the person's settings of git are, "git apply" has to understand it.
  std::string changes = run_command({"git", "--no-optional-locks", "-C", spec.cwd.string(), "-c",
                                     "diff.relative=false", "diff", "--no-color", "--no-ext-diff",
                                     "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "HEAD"},
                                    [] { return true; })
                            .out;
  if (changes.size() > kMost) changes.replace(kMost, std::string::npos, "\n[... the rest is left out ...]\n");
  write_file_atomically(run / kChangesFile, changes, Survives::kKill);
}

// Waits until the program of an attempt before is gone, whose worker was killed.
LockFile lock_run(const fs::path& run, const TrainerOptions& options) {
  check_owner(options.owner);
  check_is_own_directory(run);
  make_directories(run);
  LockFile lock(run / kProgramLock);
  constexpr int kTries = 3000;  // 10 ms each
  for (int tries = 0; !lock.try_lock(LockKind::kExclusive); ++tries) {
    if (tries == kTries)
      throw IoError(lock.path().string() + ": is held by a program that an earlier attempt has started");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

}  // namespace

CommandFiles::CommandFiles(const WorkerTask& task, const TrainerOptions& options)
    : config_(task.config),
      options_(options),
      directory_(fs::absolute(options.directory / task.config.name)),
      record_(task.record),
      lock_(lock_run(directory_, options)) {
  // Takes over what was recorded of the run, or of the one that it continues.
  const auto go_on_from = [this](const RunRecord& earlier) {
    record_.epochs = earlier.epochs;
    record_.run_seconds = earlier.run_seconds;
  };
  const std::optional<RunRecord> earlier = whole_record(read_run_record, directory_ / kRunRecordFile);
  const bool is_same = earlier ? differences(identity_of(*earlier), identity_of(record_)).empty()
                               : is_told_by_others(directory_, config_);
  if (is_same && earlier) {
    go_on_from(*earlier);
    record_.started = earlier->started;
  }
  if (!is_same) {
    prepare_run_directory(directory_, [&] {
      check_owner(options.owner);
      // Before the record: a start that finds only these takes them for this run's.
      std::error_code ignored;
      for (const char* name : {kMetricsFile, kCheckpointFolder}) fs::remove_all(directory_ / name, ignored);
    });
  }
  if (continues(config_)) {
    const fs::path start = directory_ / kStartFolder;
    if (!fs::exists(directory_ / kMetricsFile))
      write_file_atomically(directory_ / kMetricsFile, read_file(start / kMetricsFile), Survives::kKill);
    if (record_.epochs.empty()) go_on_from(read_run_record(start / kRunRecordFile));
  }
  remove_temporaries(directory_);
  make_directories(directory_ / kCheckpointFolder);
  keep_changes(directory_, record_, *config_.command);
  if (record_.started.empty()) record_.started = utc_time();
  record_.status = RunStatus::kRunning;
  open_events();
}

void CommandFiles::open_events() {
  events_.reset();
  for (const std::string& file : own_event_files(directory_)) {
    std::error_code ignored;
    fs::remove(directory_ / file, ignored);
  }
  // The program's file may already have later steps of the metrics that ours has to repeat.
  begin_events_file(true);
  events_->begin(record_.provenance);
}

void CommandFiles::begin_events_file(bool sorts_first) {
  const Run run = describe_run(config_, record_.device, record_.jobs);
  const tbwriter::WriterOptions options{
      .purge_step = kNoPurge, .sorts_first = sorts_first, .locks_directory = kLocks};
  events_ = std::make_unique<RunLog>(directory_, run, options);
}

void CommandFiles::write_events(std::int64_t step, const EpochRecord& values) {
  if (step >= 0 && step <= kMaxEventStep && !values.values.empty())
    events_->epoch(values, std::nullopt, step);
}

void CommandFiles::save(std::vector<EpochRecord> epochs, double seconds) {
  check_owner(options_.owner);
  events_->flush();
  write_record(std::move(epochs), seconds);
}

void CommandFiles::write_record(std::vector<EpochRecord> epochs, double seconds) {
  record_.epochs = std::move(epochs);
  record_.run_seconds = seconds;
  write_file_atomically(directory_ / kRunRecordFile, run_record_text(record_), Survives::kKill);
}

RunRecord CommandFiles::end(std::vector<EpochRecord> epochs, double seconds, const RunEnding& ending) {
  check_owner(options_.owner);
  record_.status = ending.status;
  record_.stop_reason = ending.stop;
  if (!ending.error.empty()) record_.error = ending.error;
  // TensorBoard stops reading our file once the program has written a later one.
  const std::vector<std::string> files = tbwriter::list_event_files(directory_);
  if (!files.empty() && !tbwriter::is_event_file_name(files.back())) {
    events_->close(RunStatus::kInterrupted, "");
    begin_events_file(false);
  }
  events_->close(ending.status, ending.error);
  record_.event_files = event_file_sizes(directory_);
  record_.ended = utc_time();
  write_record(std::move(epochs), seconds);
  return std::move(record_);
}

}  // namespace sweep
