#include "runmanager/training/ended_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/run_log.h"
#include "tbwriter/event_decoder.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

// What the process that wrote the events may have said last: that the run has ended, or that it waits.
bool is_end(std::string_view payload) {
  return std::ranges::any_of(tbwriter::decode_event(payload).values, [](const tbwriter::DecodedValue& value) {
    return value.tag == kStatusTag || value.tag == "_hparams_/session_end_info";
  });
}

void remove_end(const std::filesystem::path& directory) {
  std::vector<std::string> files = tbwriter::list_event_files(directory);
  std::erase_if(files, [](const std::string& file) { return !tbwriter::is_event_file_name(file); });
  if (files.empty()) return;
  const std::filesystem::path newest = directory / files.back();
  tbwriter::EventReader reader(newest);
  std::uint64_t begin = 0;
  for (auto payload = reader.next(); payload && !is_end(*payload); payload = reader.next())
    begin = reader.position();
  if (begin == reader.position()) return;
  std::error_code error;
  std::filesystem::resize_file(newest, begin, error);
  if (error) throw IoError(fmt::format("{}: cannot be cut: {}", newest.string(), error.message()));
}

// Replaces the end of the session, with the reason, in what others have written.
void append_end(const std::filesystem::path& directory, const Run& run, const RunRecord& record, bool locks) {
  // How many steps those have written is not known. A start above every possible step makes TensorBoard drop
  // none of them.
  constexpr std::int64_t kAfterAllSteps = std::int64_t{1} << 31;
  remove_end(directory);
  RunLog log = has_events(directory) ? RunLog(directory, run, kAfterAllSteps, locks)
                                     : RunLog(directory, run, record.provenance, locks);
  log.close(record.status, record.error.value_or(""));
}

}  // namespace

void record_pruned_run(const RecorderOptions& options, const Run& run, RunRecord& record) {
  const std::filesystem::path directory = options.directory / run.name;
  check_is_own_directory(directory);
  remove_temporaries(directory);
  append_end(directory, run, record, !options.shared);
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
