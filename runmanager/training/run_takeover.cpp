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
#include "runmanager/training/run_takeover.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "runmanager/records/run_files.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/resume.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> own_event_files(const fs::path& directory) {
  std::vector<std::string> files = tbwriter::list_event_files(directory);
  std::erase_if(files, [](const std::string& file) { return !tbwriter::is_event_file_name(file); });
  return files;
}

}  // namespace

void take_over_run(const fs::path& directory, std::string_view id, const Network& network,
                   const std::function<void()>& check_owner, ResumePoint& point) {
  check_owner();
  const std::vector<std::string> there = own_event_files(directory);
  Checkpoint& checkpoint = *point.checkpoint;
  RunPosition& position = checkpoint.progress.position;
  // A process that had the sweep for itself lists none: they are all that are older.
  if (position.earlier_files.empty()) {
    std::ranges::copy_if(there, std::back_inserter(position.earlier_files),
                         [&](const std::string& file) { return file < position.events_file; });
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
  std::error_code ignored;
  fs::remove(directory / kPreviousCheckpointFile, ignored);
  for (const std::string& file : there) {
    if (file != copy.file && std::ranges::find(position.earlier_files, file) == position.earlier_files.end())
      fs::remove(directory / file, ignored);
  }
  point.is_previous = false;
}

}  // namespace sweep
