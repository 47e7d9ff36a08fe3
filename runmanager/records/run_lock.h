// Which process trains a run of a sweep that several share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runmanager/records/lock_file.h"

namespace sweep {

/// What a process says in the lock file of a run that it trains.
struct RunOwner {
  std::filesystem::path file;
  std::string id;  // random
};

/// Whether the run still belongs to `owner`. Asks the file system, which may answer late: a process that was
/// cut off learns only then that the server has given its lock to another one. Thread-safe, and may be called
/// by any process.
bool owns(const RunOwner& owner);

/// The lock of a run, held by the process that trains it and by each that got fd(). Not thread-safe.
class RunLock {
 public:
  /// Makes the directory if it is missing. Returns nothing if another process has the run. Throws IoError,
  /// also if the directory is a symbolic link.
  static std::optional<RunLock> try_lock(const std::filesystem::path& run_directory);

  const RunOwner& owner() const { return owner_; }
  int fd() const { return file_.fd(); }
  /// The last argument of note_failure() for this run, by any process; "" once the run was locked again.
  const std::string& failed_start() const { return failed_start_; }
  /// Leaves for others that the run has failed in that start of the sweep. Throws IoError.
  void note_failure(const std::string& start);

 private:
  RunLock(LockFile file, RunOwner owner) : file_(std::move(file)), owner_(std::move(owner)) {}

  LockFile file_;
  RunOwner owner_;
  std::string failed_start_;
};

/// RunLock::failed_start() without a lock; "" if the file cannot be read.
std::string failed_start_of(const std::filesystem::path& run_directory);

}  // namespace sweep
