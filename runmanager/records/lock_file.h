// Files that the kernel locks for a process: the lock of a sweep's directory, and that of each run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"

namespace sweep {

enum class LockKind { kShared, kExclusive };

/// An open lock file, which names its owner. The lock is flock(2)'s: it ends when every descriptor of it is
/// closed, also those that child processes have inherited, however they end. NFS passes it on to its server.
/// Not thread-safe.
class LockFile {
 public:
  /// Makes the file if it is missing, without locking it. Throws IoError if it cannot be written, or is not a
  /// lock file of a sweep.
  explicit LockFile(std::filesystem::path path);

  /// Locks it, or changes the kind of the lock, without waiting. Returns false if another process has it;
  /// this one then has no lock. Throws IoError if the file cannot be locked.
  bool try_lock(LockKind kind);
  void unlock();

  std::string text() const;
  /// Writes "process 4711 on node3" and what follows it, lines with line ends. Throws IoError.
  void write_owner(std::string_view more = {});
  /// Errors are ignored.
  void clear();
  /// The first line of text(), or "another process" if there is none.
  std::string owner() const;
  /// Whether owner() was a process of this machine and is gone, or is not known.
  bool owner_may_be_gone() const;

  int fd() const { return file_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

/// The rest of the line of `text` that begins with `key` and a blank; "" if there is none.
std::string line_of(std::string_view text, std::string_view key);

/// 16 random hexadecimal digits.
std::string random_id();

/// Returns the processes of this machine that have locks on the file, one for each lock, as far as this
/// process may see them. `locks`: the content of /proc/locks.
std::vector<int> locks_here(std::string_view locks, const LockFile& file);

/// Returns why a lock on a file below `path` does not hold on other machines that share the directory:
/// "nfs4 is mounted with local_lock=all"; "" if it does, or if no other machine has the directory.
/// `mounts`: the content of /proc/self/mounts.
std::string why_locks_are_local(const std::string& mounts, const std::filesystem::path& path);

/// What a process says in the lock file of a run that it trains.
struct RunOwner {
  std::filesystem::path file;
  std::string id;  // random
};

/// Whether the run still belongs to `owner`. Asks the file system, which may answer late: a process that was
/// cut off learns only then that the server has given its lock to another one. Thread-safe, and may be called
/// by any process.
bool owns(const RunOwner& owner);

/// Thrown where a run is not this process's any more. No error of the run.
struct RunTakenOver {};
/// Throws RunTakenOver unless the run still belongs to its owner, if it has one.
void check_owner(const std::optional<RunOwner>& owner);

/// The lock of a run, held by the process that trains it and by each that got fd(). Not thread-safe.
class RunLock {
 public:
  /// Makes the directory if it is missing. Returns nothing if another process has the run. Throws IoError,
  /// also if the directory is a symbolic link.
  static std::optional<RunLock> try_lock(const std::filesystem::path& run_directory);

  const RunOwner& owner() const { return owner_; }
  int fd() const { return file_.fd(); }
  /// Leaves for others that the run has failed in that start of the sweep. Throws IoError.
  void note_failure(const std::string& start);

 private:
  RunLock(LockFile file, RunOwner owner) : file_(std::move(file)), owner_(std::move(owner)) {}

  LockFile file_;
  RunOwner owner_;
};

/// The last argument of note_failure() for this run, by any process; "" if there was none, or the file cannot
/// be read.
std::string failed_start_of(const std::filesystem::path& run_directory);

}  // namespace sweep
