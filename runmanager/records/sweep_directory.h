// The directory of a sweep, <logdir>/<name>, locked against a second writer.
#pragma once

#include <filesystem>
#include <string>

namespace sweep {

/// Makes and locks a sweep's directory; the destructor unlocks it. The kernel keeps the lock (flock), so it
/// ends with the process however that dies. Not thread-safe.
class SweepDirectory {
 public:
  /// Throws IoError, before anything is made, if <logdir>/<name> could not be made or written, or if another
  /// process holds it (with its process id and host). An early check only: the result may change before
  /// open().
  static void check(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes and locks <logdir>/<name>, or with `fresh` the first of <name>, <name>-2, <name>-3, … that is not
  /// there yet. Throws IoError as check() does.
  static SweepDirectory open(const std::filesystem::path& logdir, const std::string& name, bool fresh);

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
  SweepDirectory(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;  // of .lock
};

}  // namespace sweep
