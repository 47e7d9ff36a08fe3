// Which interleavings are possible, and why none loses or doubles anything
//
// An attempt, A, may be stopped for any time between any two of its system calls, and go on when another, B,
// has taken the run from it, and a third, C, from that. What each writes:
//
//   its events       to files that it has made itself, under names that nobody else makes
//   its checkpoints  under names that have the attempt in them
//   run.json         shared; while a run is trained it only tells how far it is
//   the end          a link in the run's chain of claims, of which there is one of each number
//
// A appends to its events after B has come. B has copied what stands before its checkpoint's position, which
// A never changes, and has removed A's name: A appends to a file without a name.
//
// A replaces its checkpoint while B looks for one to go on from. B has read a whole one, either the older or
// the newer, and the events that it speaks of are those that B copies.
//
// A replaces its checkpoint after B has removed it. It names an events file that is gone, so nobody goes on
// from it: C takes B's. If B has died before it had one, A's events are still there, and C goes on from A's.
//
// B dies between two steps of take_over_run(). Until its checkpoint is on the disk, A's is complete with all
// that it needs; then B's is.
//
// A removes files, in take_over_run() or when it begins anew, though B has come. It removes only what it had
// listed before it last saw that it was the owner, so nothing of B's. B may miss a file of an attempt before
// A that A had already copied; B then finds A's copy, or ends with an error and is taken over itself.
//
// A ends the run though B has come. The end is the same link as B's claim, so one of them gets EEXIST: either
// A has ended the run and B never began, or B owns it and what A has computed does not count.
//
// A makes files after B has ended the run: a checkpoint, or a copy of B's own events if it was stopped right
// after its claim. They count for nobody, but readers would find them. A's process removes them when it sees
// that the run has ended, and puts B's run.json in its place if A has replaced it (see ClaimedRuns).
#include "runmanager/training/run_takeover.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Returns the files that belong to the run. The position of `progress` is then in the copy.
std::vector<std::string> copy_events(const fs::path& directory, std::string_view attempt, bool lists_files,
                                     const std::vector<std::string>& there, RunProgress& progress) {
  RunPosition& position = progress.position;
  if (!lists_files) {
    for (const std::string& file : there) {
      if (file < position.events_file) position.earlier_files.push_back(file);
    }
  }
  const tbwriter::FilePosition copy =
      tbwriter::copy_prefix(directory, {position.events_file, position.events_bytes},
                            directory / (std::string(kEventsCopy) + std::string(attempt) + ".tmp"));
  position.events_file = copy.file;
  position.events_bytes = copy.bytes;
  std::vector<std::string> kept = position.earlier_files;
  kept.push_back(copy.file);
  return kept;
}

void remove_others(const fs::path& directory, const CheckpointNames& own,
                   const std::vector<std::string>& attempts) {
  std::error_code ignored;
  for (const std::string& attempt : attempts) {
    const CheckpointNames names = checkpoint_names(attempt);
    for (const auto& [file, kept] :
         {std::pair(names.newest, own.newest), std::pair(names.previous, own.previous),
          std::pair(names.best, own.best)})
      if (file != kept) fs::remove(directory / file, ignored);
  }
}

}  // namespace

void take_over_run(const fs::path& directory, std::string_view attempt, const Network& network,
                   bool keeps_best, const std::function<void()>& check_owner, ResumePoint& point) {
  check_owner();
  const CheckpointNames own = checkpoint_names(attempt), old = checkpoint_names(point.attempt);
  const std::vector<std::string> there = own_event_files(directory);
  std::vector<std::string> attempts = attempts_in(directory);
  attempts.emplace_back();  // the usual names
  Checkpoint& checkpoint = *point.checkpoint;
  RunProgress& progress = checkpoint.progress;
  const std::vector<std::string> kept =
      copy_events(directory, attempt, !point.attempt.empty(), there, progress);
  CheckpointMetadata metadata;
  update(metadata, progress.record, progress.position);
  write_checkpoint(directory / own.newest, network, checkpoint.state, metadata, Survives::kPowerCut);
  const std::optional<int> best = progress.record.best_epoch;
  if (keeps_best && best) {
    const bool is_last = !progress.record.epochs.empty() && *best == progress.record.epochs.back().epoch;
    const fs::path from = directory / (is_last ? own.newest : old.best);
    if (from != directory / own.best) link_file_atomically(from, directory / own.best);
    sync_directory(directory);
  }
  check_owner();
  for (const std::string& file : there) {
    std::error_code ignored;
    if (!contains(kept, file)) fs::remove(directory / file, ignored);
  }
  remove_others(directory, own, attempts);
  point.attempt = attempt;
  point.is_previous = false;
}

}  // namespace sweep
