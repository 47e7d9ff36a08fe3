#include "runmanager/records/sweep_directory.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/retry.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

[[noreturn]] void throw_io(const fs::path& path, const std::string& message, int error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), message, std::strerror(error)));
}

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

// What the lock file says; "" while nobody holds it.
std::string lock_text(int fd) {
  std::array<char, 512> text{};
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = retry_interrupted(
        [&] { return ::pread(fd, text.data() + length, text.size() - length, static_cast<off_t>(length)); });
    if (got <= 0) return {text.data(), length};
    length += static_cast<std::size_t>(got);
  }
}

// Whether this is what write_lock_text() writes, or what a power cut left of it: some first bytes, then
// zeros.
bool may_be_lock_text(std::string_view text) {
  constexpr std::string_view kBegin = "process ";
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  return text.starts_with(kBegin) || kBegin.starts_with(text);
}

void write_lock_text(int fd, std::string_view text, const fs::path& path) {
  if (retry_interrupted([fd] { return ::ftruncate(fd, 0); }) != 0) throw_io(path, "cannot write", errno);
  for (off_t position = 0; !text.empty();) {
    const ssize_t written =
        retry_interrupted([&] { return ::pwrite(fd, text.data(), text.size(), position); });
    if (written < 0) throw_io(path, "cannot write", errno);
    position += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_owner(int fd) {
  std::string owner = lock_text(fd);
  while (!owner.empty() && owner.back() == '\n') owner.pop_back();
  return owner.empty() ? "another process" : owner;
}

// Whether the process that read_owner() names was on this machine and is gone.
bool owner_is_gone(const std::string& owner) {
  int pid = 0;
  std::array<char, 256> host{}, here{};
  if (std::sscanf(owner.c_str(), "process %d on %255s", &pid, host.data()) != 2 || pid <= 0) return false;
  ::gethostname(here.data(), here.size() - 1);
  return std::strcmp(host.data(), here.data()) == 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

// The workers of a killed sweep have inherited its lock and hold it for the moment until they are gone, too.
// So the lock is tried for a while if its owner is gone.
bool try_lock(int fd) {
  constexpr int kTries = 200;  // times 10 ms
  for (int tries = 0;; ++tries) {
    if (retry_interrupted([fd] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0) return true;
    const int error = errno;
    if (error != EWOULDBLOCK || tries == kTries || !owner_is_gone(read_owner(fd))) {
      errno = error;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Another process has the lock.
class HeldError : public IoError {
 public:
  using IoError::IoError;
};

// Returns the descriptor of the locked file. Throws HeldError if another process has the lock.
int lock(const fs::path& directory) {
  const fs::path path = directory / kLockFile;
  FileDescriptor file = open_output_file(path, OutputMode::kUpdate);
  const int fd = file.get();
  if (!try_lock(fd)) {
    const int error = errno;
    const std::string owner = read_owner(fd);
    if (error != EWOULDBLOCK) throw_io(path, "cannot lock", error);
    throw HeldError(
        fmt::format("{}: held by another sweep, {}. Wait for it, or use --fresh or another --logdir.",
                    directory.string(), owner));
  }
  // A file of the user's that is called so, or a hard link to one.
  if (!may_be_lock_text(lock_text(fd)))
    throw IoError(path.string() + ": is not the lock file of a sweep; it is left as it is");
  write_lock_text(fd, this_process() + "\n", path);
  return file.release();
}

// `path`, or the nearest directory above it that exists.
fs::path nearest_existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path())
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
  if (existing == path && !fresh) ::close(lock(path));
}

bool SweepDirectory::is_held(const fs::path& path) {
  try {
    const FileDescriptor file = open_regular_file(path / kLockFile);
    return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
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
      return SweepDirectory(path, lock(path));
    } catch (const HeldError&) {
      if (!fresh) throw;  // A sweep of that very name has begun in the new directory.
    }
  }
}

SweepDirectory::SweepDirectory(SweepDirectory&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

bool SweepDirectory::exists() const {
  struct stat held {
  }, named{};
  return ::fstat(fd_, &held) == 0 && ::stat((path_ / kLockFile).c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

SweepDirectory::~SweepDirectory() {
  if (fd_ < 0) return;
  // The file stays. If it were removed, a process that has opened it already could lock it while another one
  // locks a new file of the same name.
  [[maybe_unused]] const int emptied = ::ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace sweep
