// <logdir>/<name>: made, locked against a second writer, released at the end.
#pragma once

#include <filesystem>
#include <string>

namespace sweep {

/// Holds a sweep's directory. The lock is the kernel's (flock), so it ends with the process however that
/// dies. Movable; not thread-safe.
class SweepDirectory {
 public:
  /// Throws IoError, before anything is made, if <logdir>/<name> could not be made or written, or if another
  /// process holds it (with its process id and host). A quick look only: open() decides.
  static void check(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes and locks <logdir>/<name>, or with `fresh` the first of <name>, <name>-2, <name>-3, … that is not
  /// there yet. Throws IoError as check() does.
  static SweepDirectory open(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Whether a sweep that is running holds `path`. What a run.json calls running is so only then.
  static bool is_held(const std::filesystem::path& path);

  ~SweepDirectory();
  SweepDirectory(SweepDirectory&& other) noexcept;
  SweepDirectory& operator=(SweepDirectory&&) = delete;
  SweepDirectory(const SweepDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether it is still there: not removed, and not another one in its place.
  bool exists() const;
  /// The descriptor that holds the lock. A child process that has it, too, keeps the directory locked until
  /// both are gone, so that nobody else writes beside a worker that is about to die.
  int lock_fd() const { return fd_; }
  /// The sweep's name, with the number that `fresh` added.
  std::string name() const { return path_.filename().string(); }

 private:
  SweepDirectory(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;  // of .lock
};

}  // namespace sweep
