#include "runmanager/records/sweep_directory.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
#include "runmanager/claims/membership.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

[[noreturn]] void throw_io(const fs::path& path, const std::string& message, int error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), message, std::strerror(error)));
}

std::string process_text() {
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

// Those that share the directory, as far as they are known to live or may. "" if there are none.
std::string living_members(MemberWatch& watch) {
  std::string text;
  for (const OtherMember& member : watch.look_at_all()) {
    if (member.life != Life::kDead) text += (text.empty() ? "" : "; ") + describe(member.identity);
  }
  return text;
}

std::string living_members(const fs::path& directory) {
  MemberWatch watch(SweepDirectory::members_folder(directory), this_process());
  return living_members(watch);
}

// The workers of a killed sweep have inherited its lock and hold it for the moment until they are gone, too.
// So the lock is tried for a while if its owner is gone.
bool try_lock(const fs::path& directory, int fd, int operation) {
  constexpr int kTries = 200;  // times 10 ms
  for (int tries = 0;; ++tries) {
    if (retry_interrupted([&] { return ::flock(fd, operation | LOCK_NB); }) == 0) return true;
    const int error = errno;
    // Those that share the directory do not say so in the lock file.
    const bool is_dying =
        living_members(directory).empty() && (lock_text(fd).empty() || owner_is_gone(read_owner(fd)));
    if (error != EWOULDBLOCK || tries == kTries || !is_dying) {
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

[[noreturn]] void throw_held(const fs::path& directory, const std::string& owner) {
  throw HeldError(
      fmt::format("{}: held by another sweep, {}. Wait for it, or use --fresh or another --logdir.",
                  directory.string(), owner));
}

[[noreturn]] void throw_shared(const fs::path& directory, const std::string& members) {
  throw HeldError(fmt::format(
      "{}: shared by sweeps that were started with --join: {}. Use --join to work with them, or wait for "
      "them, or use --fresh or another --logdir.",
      directory.string(), members));
}

// Returns when no member lives; throws HeldError as soon as one is seen to. One on another machine that was
// killed is known to be dead only after a lease.
void wait_for_dead_members(const fs::path& directory) {
  constexpr std::chrono::milliseconds kPause(200);
  MemberWatch watch(SweepDirectory::members_folder(directory), this_process());
  for (;;) {
    bool unknown = false;
    for (const OtherMember& member : watch.look_at_all()) {
      if (member.life == Life::kSeen) throw_shared(directory, describe(member.identity));
      if (member.life == Life::kDead) watch.remove(member.identity);
      unknown = unknown || member.life == Life::kUnseen;
    }
    if (!unknown) return;
    std::this_thread::sleep_for(kPause);
  }
}

// A file of the user's that is called so, or a hard link to one.
void refuse_strange_file(int fd, const fs::path& path) {
  if (!may_be_lock_text(lock_text(fd)))
    throw IoError(path.string() + ": is not the lock file of a sweep; it is left as it is");
}

// Opens the lock file and locks it. Throws HeldError if another process has the lock.
FileDescriptor open_locked(const fs::path& directory, int operation) {
  const fs::path path = directory / kLockFile;
  FileDescriptor file = open_output_file(path, OutputMode::kUpdate);
  if (try_lock(directory, file.get(), operation)) return file;
  const int error = errno;
  const std::string owner = read_owner(file.get());
  if (error != EWOULDBLOCK) throw_io(path, "cannot lock", error);
  const std::string members = living_members(directory);
  if (!members.empty()) throw_shared(directory, members);
  throw_held(directory, owner);
}

// Returns the descriptor of the locked file. Throws HeldError if another process has the lock.
int lock(const fs::path& directory) {
  const fs::path path = directory / kLockFile;
  FileDescriptor file = open_locked(directory, LOCK_EX);
  const int fd = file.get();
  refuse_strange_file(fd, path);
  write_lock_text(fd, process_text() + "\n", path);
  return file.release();
}

// Whether the lock file says that a process on another machine has the directory.
bool is_of_another_host(const std::string& owner) {
  int pid = 0;
  std::array<char, 256> host{}, here{};
  if (std::sscanf(owner.c_str(), "process %d on %255s", &pid, host.data()) != 2) return false;
  ::gethostname(here.data(), here.size() - 1);
  return std::strcmp(host.data(), here.data()) != 0;
}

// Returns the descriptor of the file that is locked together with others.
int lock_shared(const fs::path& directory) {
  FileDescriptor file = open_locked(directory, LOCK_SH);
  refuse_strange_file(file.get(), directory / kLockFile);
  const std::string owner = read_owner(file.get());
  // The lock was to be had, so that process is dead, unless locks do not reach its machine.
  if (is_of_another_host(owner) && beats_within(directory / kLockFile, lease())) throw_held(directory, owner);
  [[maybe_unused]] const int emptied = ::ftruncate(file.get(), 0);
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

// Files are written and removed in the folder of the claims and in those below it.
void refuse_linked_claims(const fs::path& directory) {
  const fs::path claims = directory / kClaimsFolder, runs = claims / "runs";
  for (const fs::path& folder : {claims, claims / "members", claims / "turns", runs, runs / "owners",
                                 runs / "settled", runs / "released"})
    check_is_own_directory(folder);
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

bool SweepDirectory::is_held(const fs::path& path) { return SweepDirectoryWatch(path).is_held(); }

SweepDirectoryWatch::SweepDirectoryWatch(fs::path path)
    : path_(std::move(path)), members_(SweepDirectory::members_folder(path_), this_process()) {}

bool SweepDirectoryWatch::is_held() {
  try {
    const FileDescriptor file = open_regular_file(path_ / kLockFile);
    if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) return true;
    const fs::path folder = SweepDirectory::members_folder(path_);
    return std::ranges::any_of(members_.look_at_all(), [&folder](const OtherMember& member) {
      return member.life == Life::kSeen ||
             (member.life == Life::kUnseen && has_beaten_lately(folder, member.identity));
    });
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
      refuse_linked_claims(path);
      SweepDirectory directory(path, lock(path), /*shared=*/false);
      wait_for_dead_members(path);
      return directory;
    } catch (const HeldError&) {
      if (!fresh) throw;  // A sweep of that very name has begun in the new directory.
    }
  }
}

SweepDirectory SweepDirectory::join(const fs::path& logdir, const std::string& name) {
  const fs::path path = logdir / name;
  refuse_link(path);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_io(path, "cannot make this directory", error.value());
  refuse_linked_claims(path);
  return {path, lock_shared(path), /*shared=*/true};
}

fs::path SweepDirectory::members_folder(const fs::path& path) { return path / kClaimsFolder / "members"; }

SweepDirectory::SweepDirectory(fs::path path, int fd, bool shared)
    : path_(std::move(path)), fd_(fd), shared_(shared) {
  if (!shared) beat_ = std::make_unique<FileBeat>(path_ / kLockFile, lease());
}

SweepDirectory::SweepDirectory(SweepDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      shared_(other.shared_),
      beat_(std::move(other.beat_)) {}

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
  beat_.reset();
  if (!shared_) [[maybe_unused]]
    const int emptied = ::ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace sweep
