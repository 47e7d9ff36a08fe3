#include "runmanager/records/lock_file.h"

#include <fmt/format.h>
#include <mntent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOwner = "process ";

std::string host_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// Whether this is what write_owner() writes, or what a power cut left of it: some first bytes, then zeros.
bool may_be_lock_text(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  return text.starts_with(kOwner) || kOwner.starts_with(text);
}

bool is_below(const fs::path& path, const fs::path& directory) {
  return std::ranges::mismatch(directory, path).in1 == directory.end();
}

struct Mount {
  std::string point, type, options;
};

// The mount that holds `path`: of those with the longest name the last one, which covers the others.
Mount mount_of(std::string mounts, const fs::path& path) {
  Mount found;
  std::FILE* const file = ::fmemopen(mounts.data(), mounts.size(), "r");
  if (file == nullptr) return found;
  std::array<char, 1 << 16> buffer{};
  mntent entry{};
  while (::getmntent_r(file, &entry, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    const std::string point = entry.mnt_dir;
    // The root's name ends in a slash, which has an empty element after it.
    const bool holds = point == "/" || is_below(path, point);
    if (holds && point.size() >= found.point.size()) found = {point, entry.mnt_type, entry.mnt_opts};
  }
  ::endmntent(file);
  return found;
}

}  // namespace

LockFile::LockFile(fs::path path)
    : path_(std::move(path)), file_(open_output_file(path_, OutputMode::kUpdate)) {
  // A file of the user's that is called so, or a hard link to one.
  if (!may_be_lock_text(text()))
    throw IoError(path_.string() + ": is not the lock file of a sweep; it is left as it is");
}

bool LockFile::try_lock(LockKind kind) {
  const int operation = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
  if (retry_interrupted([&] { return ::flock(fd(), operation | LOCK_NB); }) == 0) return true;
  if (errno != EWOULDBLOCK)
    throw_io(path_, "cannot lock, want a --logdir whose file system has locks", errno);
  return false;
}

void LockFile::unlock() { ::flock(fd(), LOCK_UN); }

std::string LockFile::text() const {
  std::array<char, 512> text{};
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = retry_interrupted([&] {
      return ::pread(fd(), text.data() + length, text.size() - length, static_cast<off_t>(length));
    });
    if (got <= 0) return {text.data(), length};
    length += static_cast<std::size_t>(got);
  }
}

void LockFile::write_owner(std::string_view more) {
  const std::string text = fmt::format("{}{} on {}\n{}", kOwner, ::getpid(), host_name(), more);
  if (retry_interrupted([this] { return ::ftruncate(fd(), 0); }) != 0 || ::lseek(fd(), 0, SEEK_SET) != 0)
    throw_io(path_, "cannot write", errno);
  write_all(fd(), text, path_);
}

void LockFile::clear() { [[maybe_unused]] const int emptied = ::ftruncate(fd(), 0); }

std::string LockFile::owner() const {
  const std::string whole = text();
  const std::string first = whole.substr(0, whole.find('\n'));
  return first.empty() ? "another process" : first;
}

bool LockFile::owner_may_be_gone() const {
  int pid = 0;
  std::array<char, 256> host{};
  if (std::sscanf(owner().c_str(), "process %d on %255s", &pid, host.data()) != 2 || pid <= 0)
    return text().empty();
  return host_name() == host.data() && ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::string line_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : lines_of(text)) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return std::string(line.substr(key.size() + 1));
  }
  return "";
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

namespace {

// The number of its file system. stat(2) tells another one on Btrfs and on overlays.
dev_t file_system_of(const LockFile& file, dev_t by_default) {
  constexpr std::string_view kMount = "mnt_id:";
  const std::string info = read_file(fmt::format("/proc/self/fdinfo/{}", file.fd()));
  const std::size_t at = info.find(kMount);
  const int mount = at == std::string::npos ? 0 : std::atoi(info.c_str() + at + kMount.size());
  const std::string mounts = read_file("/proc/self/mountinfo");
  for (const std::string_view line : lines_of(mounts)) {
    int id = 0;
    unsigned first = 0, second = 0;
    const std::string text(line);
    if (std::sscanf(text.c_str(), "%d %*d %u:%u", &id, &first, &second) == 3 && id == mount)
      return makedev(first, second);
  }
  return by_default;  // Its mount is outside of a chroot.
}

}  // namespace

// "1: FLOCK  ADVISORY  READ 4711 fe:00:131 0 EOF"
std::vector<int> locks_here(std::string_view locks, const LockFile& file) {
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return {};
  const dev_t device = file_system_of(file, info.st_dev);
  const std::string where = fmt::format(" {:02x}:{:02x}:{} ", major(device), minor(device), info.st_ino);
  std::vector<int> processes;
  for (const std::string_view line : lines_of(locks)) {
    const std::size_t at = line.find(where);
    // "->" is of one that waits.
    if (at == std::string_view::npos || line.find("->") != std::string_view::npos) continue;
    const int process = std::atoi(std::string(line.substr(line.rfind(' ', at - 1) + 1)).c_str());
    if (process > 0) processes.push_back(process);
  }
  return processes;
}

std::string why_locks_are_local(const std::string& mounts, const fs::path& path) {
  // FUSE answers flock(2) itself unless the file system's program does; these do.
  static constexpr std::string_view kPassOn[] = {"glusterfs", "ceph-fuse", "juicefs", "mfs",
                                                 "fuse-overlayfs"};
  constexpr std::string_view kFuse = "fuse.";
  const Mount mount = mount_of(mounts, path);
  const std::string_view type = mount.type;
  if (type.starts_with(kFuse) && std::ranges::find(kPassOn, type.substr(kFuse.size())) == std::end(kPassOn))
    return fmt::format("{} is not known to pass locks on to other machines", type);
  const auto mounted_with = [&](std::string_view option) {
    return fmt::format("{} is mounted with {}", type, option);
  };
  for (const std::string_view option : split(mount.options, ',')) {
    const bool nfs = type.starts_with("nfs") &&
                     (option == "nolock" || option == "local_lock=all" || option == "local_lock=flock");
    const bool lustre = type == "lustre" && option == "localflock";
    const bool smb = (type == "cifs" || type == "smb3") && option == "nobrl";
    if (nfs || lustre || smb) return mounted_with(option);
  }
  return "";
}

namespace {

constexpr const char *kId = "id", *kFailed = "failed";

// What follows the process in the file.
std::string more_text(const RunOwner& owner, const std::string& failed_start) {
  std::string text = fmt::format("{} {}\n", kId, owner.id);
  return failed_start.empty() ? text : text + fmt::format("{} {}\n", kFailed, failed_start);
}

}  // namespace

// The file is opened anew each time: only then does a network file system ask its server.
bool owns(const RunOwner& owner) {
  try {
    return line_of(read_file(owner.file), kId) == owner.id;
  } catch (const ReadError&) {
    throw;
  } catch (const DataError&) {
    return false;
  }
}

void check_owner(const std::optional<RunOwner>& owner) {
  if (owner && !owns(*owner)) throw RunTakenOver{};
}

std::optional<RunLock> RunLock::try_lock(const fs::path& run_directory) {
  check_is_own_directory(run_directory);
  make_directories(run_directory);
  LockFile file(run_directory / kLockFile);
  if (!file.try_lock(LockKind::kExclusive)) return std::nullopt;
  const std::string text = file.text();
  RunLock lock(std::move(file), {.file = run_directory / kLockFile, .id = random_id()});
  lock.file_.write_owner(more_text(lock.owner_, line_of(text, kFailed)));
  return lock;
}

void RunLock::note_failure(const std::string& start) { file_.write_owner(more_text(owner_, start)); }

std::string failed_start_of(const fs::path& run_directory) {
  try {
    return line_of(read_file(run_directory / kLockFile), kFailed);
  } catch (const DataError&) {
    return "";
  }
}

}  // namespace sweep
