#include "runmanager/training/resume_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// The checkpoint in `file`, if it can be used.
ResumePoint read_resume_point(const PreparedRun& run, const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error) && !error) return {};
  try {
    Checkpoint checkpoint = read_checkpoint(file, *run.network);
    const RunRecord& record = checkpoint.progress.record;
    const std::vector<SettingDifference> different = differences(
        identity_of(record), identity_of(run.config->resolved, run.device.name(), run.provenance));
    if (!different.empty())
      return {.problem = "the checkpoint is of a run with other settings: " + to_string(different)};
    if (keeps_best(*run.config) && !has_best_epoch(record, file.parent_path()))
      return {.problem =
                  fmt::format("{} is not that of epoch {}, or damaged", kBestFile, *record.best_epoch)};
    return {.checkpoint = std::move(checkpoint)};
  } catch (const ReadError&) {
    throw;  // It may be whole, and a start from the beginning would replace it.
  } catch (const DataError& damaged) {
    return {.problem = damaged.what()};
  }
}

std::size_t epochs_of(const ResumePoint& point) { return point.checkpoint->progress.record.epochs.size(); }

// Whether the events reach as far as the checkpoint says. After a power cut they may not.
bool has_whole_events(const ResumePoint& point, const fs::path& run_directory) {
  const RunPosition& position = point.checkpoint->progress.position;
  try {
    return tbwriter::check_events_file(run_directory / position.events_file).bytes >= position.events_bytes;
  } catch (const ReadError&) {
    throw;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

ResumePoint find_resume_point(const PreparedRun& run, const fs::path& run_directory) {
  const fs::path newest = run_directory / kCheckpointFile, previous = run_directory / kPreviousCheckpointFile;
  ResumePoint point = read_resume_point(run, newest);
  std::error_code error;
  if (point.checkpoint && fs::equivalent(newest, previous, error)) return point;
  ResumePoint older = read_resume_point(run, previous);
  if (!older.checkpoint) return point;
  if (point.checkpoint && epochs_of(point) >= epochs_of(older)) {
    // Only training again brings all lost events back, those of batches, say.
    if (has_whole_events(point, run_directory) || !has_whole_events(older, run_directory)) return point;
    point.problem = fmt::format("{} has lost the events that {} speaks of",
                                point.checkpoint->progress.position.events_file, kCheckpointFile);
  }
  older.problem = std::move(point.problem);
  older.is_previous = true;
  return older;
}

std::set<std::int64_t> recorded_epochs(const fs::path& directory) {
  std::set<std::int64_t> steps;
  for (const std::string& name : own_event_files(directory)) {
    tbwriter::EventReader reader(directory / name);
    while (const auto payload = reader.next()) {
      const tbwriter::DecodedEvent event = tbwriter::decode_event(*payload);
      // All points of an epoch are in one record, and every epoch has this one.
      const auto is_epoch = [](const tbwriter::DecodedValue& value) { return value.tag == "Loss/train"; };
      if (std::ranges::any_of(event.values, is_epoch)) steps.insert(event.step);
    }
  }
  return steps;
}

void remove_events(const fs::path& directory) {
  const std::vector<std::string> files = own_event_files(directory);
  // The latest first: what is left after an interruption is still the beginning of the run.
  for (auto name = files.rbegin(); name != files.rend(); ++name) {
    std::error_code error;
    fs::remove(directory / *name, error);
    if (error) throw IoError((directory / *name).string() + ": cannot remove: " + error.message());
  }
}

void remove_other_events(const fs::path& directory, const RunPosition& position) {
  if (!position.earlier_files) return;
  for (const std::string& file : own_event_files(directory)) {
    std::error_code ignored;
    if (file != position.events_file &&
        std::ranges::find(*position.earlier_files, file) == position.earlier_files->end())
      fs::remove(directory / file, ignored);
  }
}

// What a process can do to a run that it has lost
//
// The server of a network file system gives the lock of a process, A, to another, B, if it has not heard from
// A's machine for too long. A may go on between any two of its system calls until it sees that it owns() the
// run no more, which it asks before each checkpoint and each record:
//
//   its events      go to a file that it has made itself; B has copied the beginning and removed the name
//   its checkpoint  replaces B's as a whole, and names an events file that is gone. B's next one replaces it.
//                   If B dies before that, the previous checkpoint counts, or the run starts anew
//   its run.json    likewise; if it says that the run is done, its events are missing, so the run is not kept
//
// Bits depend on nobody's turn, so no mixture of these is a wrong result.
//
// If B dies between two steps of take_over_run(): until its checkpoint is on the disk, A's is complete with
// all that it needs; then B's is.
void take_over_run(const fs::path& directory, std::string_view id, const Network& network,
                   const std::function<void()>& check_owner, ResumePoint& point) {
  check_owner();
  Checkpoint& checkpoint = *point.checkpoint;
  RunPosition& position = checkpoint.progress.position;
  // A process that had the sweep for itself lists none: they are all that are older.
  if (!position.earlier_files) {
    position.earlier_files = own_event_files(directory);
    std::erase_if(*position.earlier_files,
                  [&](const std::string& file) { return file >= position.events_file; });
  }
  const tbwriter::FilePosition copy =
      tbwriter::copy_prefix(directory, {position.events_file, position.events_bytes},
                            directory / (std::string(kEventsCopy) + std::string(id) + ".tmp"));
  position.events_file = copy.file;
  position.events_bytes = copy.bytes;
  CheckpointMetadata metadata;
  update(metadata, checkpoint.progress.record, position);
  write_checkpoint(directory / kCheckpointFile, network, checkpoint.state, metadata, Survives::kPowerCut);
  check_owner();
  // Before the events are removed that the record of a run that had ended names.
  write_file_atomically(directory / kRunRecordFile, run_record_text(checkpoint.progress.record),
                        Survives::kKill);
  std::error_code ignored;
  fs::remove(directory / kPreviousCheckpointFile, ignored);
  remove_other_events(directory, position);
  point.is_previous = false;
}

}  // namespace sweep
