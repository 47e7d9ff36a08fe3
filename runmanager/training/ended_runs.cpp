#include "runmanager/training/ended_runs.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/event_file_sizes.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/recorded_epochs.h"
#include "runmanager/tensorboard/run_log.h"

namespace sweep {
namespace {

// Appends the end of the session, with the reason, to what others have written.
void append_end(const std::filesystem::path& directory, const Run& run, const RunRecord& record, bool locks) {
  // How many steps those have written is not known. A start above every possible step makes TensorBoard drop
  // none of them.
  constexpr std::int64_t kAfterAllSteps = std::int64_t{1} << 31;
  RunLog log = has_events(directory) ? RunLog(directory, run, kAfterAllSteps, locks)
                                     : RunLog(directory, run, record.provenance, locks);
  log.close(record.status, record.error.value_or(""));
}

}  // namespace

void record_pruned_run(const RecorderOptions& options, const Run& run, RunRecord& record) {
  const std::filesystem::path directory = options.directory / run.name;
  check_is_own_directory(directory);
  if (!has_session_end(directory)) append_end(directory, run, record, !options.shared);
  record.event_files = event_file_sizes(directory);
  write_file_atomically(directory / kRunRecordFile, run_record_text(record), options.survives);
}

void record_lost_run(const RecorderOptions& options, const Run& run, const RunRecord& record) {
  const std::filesystem::path directory = options.directory / run.name;
  check_is_own_directory(directory);
  std::error_code error;
  // Its process may have ended before it made the directory, or the directory was removed.
  std::filesystem::create_directory(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
  append_end(directory, run, record, !options.shared);
  write_file_atomically(directory / kRunRecordFile, run_record_text(record), options.survives);
}

}  // namespace sweep
