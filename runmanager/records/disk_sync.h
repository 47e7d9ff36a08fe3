// Syncs a sweep's files to the disk while runs are trained.
//
// Written data is in the kernel and survives the end of the program at once. Only a power cut needs it on the
// disk. Waiting for the disk takes as long as many epochs of a small network, so a thread does that every few
// seconds, for many files at a time. A power cut therefore costs at most those seconds of work: checkpoints
// carry a checksum, and a run whose files do not fit together is trained again.
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
  explicit DiskSync(std::filesystem::path directory, double seconds_between = 10);
  /// Stops the thread without syncing what is left. Errors are lost: finish() reports them.
  ~DiskSync();
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  /// From now on, the files of the run with this name are synced in every round.
  void begin_run(const std::string& run);
  /// The run is synced once more, in the next round.
  void end_run(const std::string& run);

  /// Returns when all files are on the disk. Throws IoError, also for an error of an earlier round.
  void finish();

 private:
  void loop();
  void sync_round();

  const std::filesystem::path directory_;
  const double seconds_between_;
  std::mutex round_;  // held during a round, so that finish() waits for it; locked before mutex_
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::set<std::string> running_, ended_;
  std::string error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace sweep
