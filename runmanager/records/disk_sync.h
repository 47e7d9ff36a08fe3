// Brings what a sweep has written to the disk, beside the training.
//
// What is written survives the end of the program at once, because the kernel keeps it; only a power cut
// needs the disk to have it. Waiting for that takes as long as many epochs of a small network, so a thread of
// its own does it every few seconds, for many files at a time. A power cut so costs at most those seconds of
// work: checkpoints carry a checksum, and a run whose files do not fit together is trained again.
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
  /// `directory` is the sweep's; its own files are synced, too.
  explicit DiskSync(std::filesystem::path directory, double seconds_between = 10);
  /// Does not sync what is left; an error is lost.
  ~DiskSync();
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  /// The run of that name is being written ...
  void begin_run(const std::string& run);
  /// ... and is no more.
  void end_run(const std::string& run);

  /// Returns when the disk has everything. Throws IoError, also for what failed before.
  void finish();

 private:
  void loop();
  void sync_round();

  const std::filesystem::path directory_;
  const double seconds_between_;
  std::mutex round_;  // held while files are synced; locked before mutex_
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::set<std::string> running_, ended_;
  std::string error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace sweep
