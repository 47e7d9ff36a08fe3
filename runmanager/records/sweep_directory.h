// The directory of a sweep, <logdir>/<name>, locked against a second writer.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runmanager/claims/file_beat.h"
#include "runmanager/claims/membership.h"

namespace sweep {

/// Makes and locks a sweep's directory; the destructor unlocks it. The kernel keeps the lock (flock), so it
/// ends with the process however that dies. Either one process has the directory for itself, or several share
/// it, which are the members of members_folder(). Where flock does not reach other machines, whoever has the
/// directory for itself is known by the time of the lock file, which it sets every few seconds, and members
/// by their beats. Not thread-safe.
class SweepDirectory {
 public:
  /// Throws IoError, before anything is made, if <logdir>/<name> could not be made or written, or if another
  /// process holds it (with its process id and host). An early check only: the result may change before
  /// open().
  static void check(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes and locks <logdir>/<name>, or with `fresh` the first of <name>, <name>-2, <name>-3, … that is not
  /// there yet. Throws IoError as check() does.
  static SweepDirectory open(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes <logdir>/<name> and locks it together with others that do the same. Waits up to a lease where it
  /// cannot tell at once whether a process on another machine that had it for itself still lives. Throws
  /// IoError as check() does.
  static SweepDirectory join(const std::filesystem::path& logdir, const std::string& name);

  /// The members (see Member) that share the directory `path`.
  static std::filesystem::path members_folder(const std::filesystem::path& path);

  /// Whether a running sweep holds `path`. Without one, a run.json that says "running" is of an interrupted
  /// run.
  static bool is_held(const std::filesystem::path& path);

  ~SweepDirectory();
  SweepDirectory(SweepDirectory&& other) noexcept;
  SweepDirectory& operator=(SweepDirectory&&) = delete;
  SweepDirectory(const SweepDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether the directory is still in its place: neither removed nor replaced by another.
  bool exists() const;
  /// The descriptor that holds the lock. Child processes that inherit it keep the directory locked until they
  /// are gone, too, so that no other sweep writes while a worker of this one still does.
  int lock_fd() const { return fd_; }
  /// The sweep's name, with the number that `fresh` added.
  std::string name() const { return path_.filename().string(); }

 private:
  SweepDirectory(std::filesystem::path path, int fd, bool shared);

  std::filesystem::path path_;
  int fd_ = -1;  // of .lock
  bool shared_ = false;
  std::unique_ptr<FileBeat> beat_;  // of a process that has the directory for itself
};

/// Looks again and again whether a running sweep holds a directory. Other than SweepDirectory::is_held(),
/// which cannot wait, it finds out after a lease that a process on another machine is dead. Not thread-safe.
class SweepDirectoryWatch {
 public:
  explicit SweepDirectoryWatch(std::filesystem::path path);
  bool is_held();

 private:
  const std::filesystem::path path_;
  MemberWatch members_;
};

}  // namespace sweep
