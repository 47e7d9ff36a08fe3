// Syncs to the disk the files of a sweep and of its runs that have ended. Those of a run that is being
// trained are synced by its CheckpointWriter.
//
// Written data is in the kernel and survives the end of the program at once. Only a power cut needs it on the
// disk. Waiting for the disk takes as long as many epochs of a small network, so a thread does that every few
// seconds, for many files at a time. Until then run.json says that a run is completed though its other files
// are not on the disk. That does not matter, because run.json names what belongs to it: the next start
// compares sizes and checksums, and continues a run of which something is missing from its last whole
// checkpoint.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sweep {

/// Any thread may call any method.
class DiskSync {
 public:
  /// `directory`: of the sweep; its own files are synced, too. Starts the thread.
  explicit DiskSync(std::filesystem::path directory);
  /// Stops the thread without syncing what is left. Errors are lost: finish() reports them.
  ~DiskSync();
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  /// The run with this name is being trained.
  void begin_run(const std::string& run);
  /// The run is synced in the next round. Nobody writes its files any more, so its last checkpoint is then
  /// safe, and the previous one is removed.
  void end_run(const std::string& run);

  /// Returns when all files are on the disk, also those of runs that have begun and not ended. Throws
  /// IoError, also for an error of an earlier round.
  void finish();

 private:
  enum class Runs { kEnded, kAll };

  void loop();
  void sync_round(Runs which);

  const std::filesystem::path directory_;
  std::mutex round_;  // held during a round, so that finish() waits for it; locked before mutex_
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::set<std::string> running_, ended_;
  std::string error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace sweep
