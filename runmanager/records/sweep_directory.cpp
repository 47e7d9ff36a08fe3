#include "runmanager/records/sweep_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTurnFile = ".turn.lock";
constexpr const char* kStart = "start";  // in the lock file of a shared directory
constexpr std::chrono::milliseconds kPause(10);

// Another process has the lock.
class HeldError : public IoError {
 public:
  using IoError::IoError;
};

[[noreturn]] void throw_held(const fs::path& directory, const LockFile& lock) {
  if (line_of(lock.text(), kStart).empty())
    throw HeldError(
        fmt::format("{}: held by another sweep, {}. Wait for it, or use --fresh or another --logdir.",
                    directory.string(), lock.owner()));
  throw HeldError(fmt::format(
      "{}: shared by sweeps that were started with --join, such as {}. Use --join to work with them, or wait "
      "for them, or use --fresh or another --logdir.",
      directory.string(), lock.owner()));
}

// Locks it unless another process has it for longer. The workers of a killed sweep hold its lock for the
// moment until they are gone, too, and who only looks whether a sweep runs has it for less.
bool lock_soon(LockFile& lock, LockKind kind, int for_dying = 200) {
  constexpr int kForLooking = 3;
  for (int tries = 0; !lock.try_lock(kind); ++tries) {
    if (tries >= (lock.owner_may_be_gone() ? for_dying : kForLooking)) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// Throws HeldError if another process has the lock.
std::unique_ptr<LockFile> lock(const fs::path& directory) {
  auto lock = std::make_unique<LockFile>(directory / kLockFile);
  if (!lock_soon(*lock, LockKind::kExclusive)) throw_held(directory, *lock);
  lock->write_owner();
  return lock;
}

// Has a lock until the scope is left.
class Turn {
 public:
  /// Waits for the lock; has none if asked to stop meanwhile.
  Turn(LockFile& lock, const std::function<int()>& stop_requested) : lock_(lock) {
    while (!(has_ = lock_.try_lock(LockKind::kExclusive)) && stop_requested() == 0)
      std::this_thread::sleep_for(kPause);
  }
  ~Turn() { lock_.unlock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return has_; }

 private:
  LockFile& lock_;
  bool has_ = false;
};

// `path`, or what is nearest above it, also a link to nothing.
fs::path nearest_existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(fs::symlink_status(path, error)) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path;
}

// <logdir>/<name>, or with `fresh` the first such path that is free. Makes nothing.
fs::path choose_path(const fs::path& logdir, const std::string& name, bool fresh) {
  fs::path path = logdir / name;
  std::error_code error;
  for (int number = 2; fresh && fs::exists(fs::symlink_status(path, error)); ++number) {
    path = logdir / fmt::format("{}-{}", name, number);
  }
  return path;
}

// A log directory may be a link, to a larger disk, say. The sweep's own directory is not written through one:
// files would be replaced and removed in a place that nobody has named.
void refuse_link(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return;
  const fs::path target = fs::weakly_canonical(path, error);
  throw IoError(
      fmt::format("{}: is a symbolic link, which a sweep is not written through; it points to {}. Use "
                  "--logdir {} and that "
                  "directory's name, or --fresh.",
                  path.string(), target.string(), target.parent_path().string()));
}

}  // namespace

void SweepDirectory::check(const fs::path& logdir, const std::string& name, bool fresh) {
  if (!fresh) refuse_link(logdir / name);
  const fs::path path = fs::absolute(choose_path(logdir, name, fresh));
  const fs::path existing = nearest_existing(path);
  std::error_code error;
  if (!fs::is_directory(existing, error)) throw_io(existing, "cannot make a log directory here", ENOTDIR);
  if (::access(existing.c_str(), W_OK | X_OK) != 0) throw_io(existing, "cannot write here", errno);
  // With `fresh`, another process has taken the number since; open() takes the next one.
  if (existing == path && !fresh) lock(path);
}

bool SweepDirectory::is_held(const fs::path& path) {
  try {
    const FileDescriptor file = open_regular_file(path / kLockFile);
    // NFS locks a file alone only where it is open for writing.
    const FileDescriptor writable(
        ::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDWR | O_CLOEXEC));
    const int fd = writable.get() >= 0 ? writable.get() : file.get();
    return ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  } catch (const DataError&) {
    return false;
  }
}

SweepDirectory SweepDirectory::open(const fs::path& logdir, const std::string& name, bool fresh) {
  for (;;) {
    const fs::path path = choose_path(logdir, name, fresh);
    if (!fresh) refuse_link(path);
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const bool made = !error && fs::create_directory(path, error);
    if (error) throw_io(path, "cannot make this directory", error.value());
    if (fresh && !made) continue;  // Another process took that number in between.
    try {
      return {path, lock(path)};
    } catch (const HeldError&) {
      if (!fresh) throw;  // A sweep of that very name has begun in the new directory.
    }
  }
}

SweepDirectory SweepDirectory::join(const fs::path& logdir, const std::string& name) {
  const fs::path path = logdir / name;
  refuse_link(path);
  make_directories(path);
  SweepDirectory directory(path, std::make_unique<LockFile>(path / kLockFile));
  directory.turn_ = std::make_unique<LockFile>(path / kTurnFile);
  return directory;
}

// Returns whether this process is alone. Throws HeldError if another one has the directory for itself.
bool SweepDirectory::lock_with_others() {
  constexpr int kForDying = 30;  // The file may name one that has ended while others go on.
  if (lock_soon(*lock_, LockKind::kExclusive, kForDying)) return true;
  if (!lock_->try_lock(LockKind::kShared)) throw_held(path_, *lock_);
  return false;
}

void SweepDirectory::write_owner() { lock_->write_owner(fmt::format("{} {}\n", kStart, start_)); }

bool SweepDirectory::plan(const std::string& start, const std::function<void(bool alone)>& plan,
                          const std::function<int()>& stop_requested) {
  const Turn turn(*turn_, stop_requested);
  if (!turn) return false;
  const bool alone = lock_with_others();
  start_ = alone ? "" : line_of(lock_->text(), kStart);
  if (start_.empty()) start_ = start;
  if (alone) write_owner();
  plan(alone);
  // The file names one of them that lives, if it can.
  if (!alone && lock_->owner_may_be_gone()) write_owner();
  if (alone && !lock_soon(*lock_, LockKind::kShared)) throw_held(path_, *lock_);
  return true;
}

void SweepDirectory::write_results(const std::function<void()>& write) {
  const Turn turn(*turn_, [] { return 0; });
  write();
}

int SweepDirectory::others_here() const {
  try {
    return std::max(0, static_cast<int>(locks_here(read_file("/proc/locks"), *lock_).size()) - 1);
  } catch (const DataError&) {
    return 0;
  }
}

void SweepDirectory::act_alone(const std::function<void()>& act) {
  const Turn turn(*turn_, [] { return 0; });
  if (lock_->try_lock(LockKind::kExclusive)) act();
  lock_->unlock();
}

bool SweepDirectory::exists() const {
  struct stat held {
  }, named{};
  return ::fstat(lock_->fd(), &held) == 0 && ::stat((path_ / kLockFile).c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

SweepDirectory::~SweepDirectory() {
  // The file stays. If it were removed, a process that has opened it already could lock it while another one
  // locks a new file of the same name.
  if (lock_ && !turn_) lock_->clear();
}

}  // namespace sweep
