#include "core/base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace sweep {
namespace {

[[noreturn]] void throw_io(const std::filesystem::path& path, const char* problem, int error) {
  throw IoError(path.string() + ": " + problem + ": " + std::strerror(error));
}

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, const char* problem, int error) {
  const std::string message = path.string() + ": " + problem + ": " + std::strerror(error);
  if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG)
    throw DataError(message);
  throw ReadError(message);
}

// -1, with errno, if that fails.
int open_descriptor(const std::filesystem::path& path, int flags) {
  constexpr mode_t kMode = 0666;  // less what the umask takes away
  return retry_interrupted([&] { return ::open(path.c_str(), flags, kMode); });
}

constexpr std::size_t kMaxOpenFiles = 32;  // of sync_files(), far below any limit of descriptors

// "run.json.4711-9a3f01c2-5.tmp": a name that nobody else uses, whatever thread, program, or machine that
// shares the directory. The random number keeps machines apart, on which processes have the same ids; the
// fixed suffix identifies leftovers of a killed program.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static const std::uint32_t machine = std::random_device()();
  static std::atomic<std::uint64_t> count{0};
  std::array<char, 64> suffix{};
  std::snprintf(suffix.data(), suffix.size(), ".%ld-%08x-%llu.tmp", static_cast<long>(::getpid()), machine,
                static_cast<unsigned long long>(++count));
  std::filesystem::path temporary = path;
  return temporary += suffix.data();
}

void sync_open_file(int fd, const std::filesystem::path& path) {
  if (retry_interrupted([fd] { return ::fsync(fd); }) != 0) throw_io(path, "cannot sync", errno);
}

// Makes a NewFile's file. One that is there already is not this program's, whatever it is: it is left alone.
int create_temporary(const std::filesystem::path& path, std::filesystem::path& temporary) {
  constexpr int kTries = 100;
  for (int tries = 0;; ++tries) {
    temporary = temporary_name(path);
    const int fd = open_descriptor(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno != EEXIST || tries == kTries) throw_io(path, "cannot create", errno);
  }
}

}  // namespace

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_io(path, "cannot make this directory", error.value());
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  // O_NONBLOCK does nothing to a regular file, and a pipe is opened without waiting for its other end.
  FileDescriptor file(open_descriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENXIO)
    throw DataError(path.string() + ": is not a regular file");  // a socket
  if (file.get() < 0) throw_unreadable(path, "cannot open", errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_unreadable(path, "cannot read", errno);
  if (!S_ISREG(info.st_mode)) throw DataError(path.string() + ": is not a regular file");
  return file;
}

std::uint64_t file_bytes(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw_unreadable(path, "cannot read", errno);
  return static_cast<std::uint64_t>(info.st_size);
}

std::size_t read_next(int fd, std::span<std::byte> out, const std::filesystem::path& path) {
  std::size_t count = 0;
  while (count < out.size()) {
    const ssize_t got = retry_interrupted([&] { return ::read(fd, out.data() + count, out.size() - count); });
    if (got < 0) throw_unreadable(path, "cannot read", errno);
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  return count;
}

FileDescriptor open_output_file(const std::filesystem::path& path, OutputMode mode) {
  int flags = O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if (mode == OutputMode::kNew) flags |= O_WRONLY | O_EXCL;
  if (mode == OutputMode::kAppend) flags |= O_WRONLY | O_APPEND;
  if (mode == OutputMode::kUpdate) flags |= O_RDWR;
  FileDescriptor file(open_descriptor(path, flags));
  if (file.get() < 0 && errno == ELOOP)
    throw IoError(path.string() + ": is a symbolic link, which is not written through");
  if (file.get() < 0 && errno == ENXIO) throw IoError(path.string() + ": is not a regular file");  // a pipe
  if (file.get() < 0) throw_io(path, "cannot write", errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_io(path, "cannot write", errno);
  if (!S_ISREG(info.st_mode)) throw IoError(path.string() + ": is not a regular file");
  return file;
}

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = retry_interrupted([&] { return ::write(fd, content.data(), content.size()); });
    if (written < 0) throw_io(path, "cannot write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  std::string content(file_bytes(file.get(), path), '\0');
  for (std::size_t size = 0;; content.resize(size + 4096)) {  // it grew, or has size 0, as those in /proc
    size += read_next(file.get(), std::as_writable_bytes(std::span(content).subspan(size)), path);
    if (size == content.size()) continue;
    content.resize(size);
    return content;
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content, Survives survives) {
  write_file_atomically(path, std::span(&content, 1), survives);
}

NewFile::NewFile(std::filesystem::path path)
    : path_(std::move(path)), fd_(create_temporary(path_, temporary_)) {}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::publish() {
  if (fd_ >= 0 && close_descriptor(std::exchange(fd_, -1)) != 0) throw_io(path_, "cannot close", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_io(path_, "cannot replace", errno);
  temporary_.clear();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts,
                           Survives survives) {
  NewFile file(path);
  for (const std::string_view part : parts) write_all(file.fd(), part, path);
  if (survives == Survives::kPowerCut) sync_open_file(file.fd(), path);
  file.publish();
  if (survives == Survives::kPowerCut) sync_directory(directory_of(path));
}

void link_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::filesystem::path temporary = temporary_name(to);
  std::error_code ignored;
  // Over a network a link that was made may be reported as failed.
  if (::link(from.c_str(), temporary.c_str()) != 0 &&
      !(errno == EEXIST && std::filesystem::equivalent(from, temporary, ignored))) {
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != ENOSYS)
      throw_io(to, "cannot create", errno);
    write_file_atomically(to, read_file(from));
    return;
  }
  const int error = ::rename(temporary.c_str(), to.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());  // rename() leaves both names if they are of one file already
  if (error != 0) throw_io(to, "cannot replace", error);
}

void sync_directory(const std::filesystem::path& directory) {
  const int fd = open_descriptor(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Without read permission it cannot be synced. One that was removed has no names that could get lost.
  if (fd < 0 && (errno == EACCES || errno == ENOENT)) return;
  if (fd < 0) throw_io(directory, "cannot sync", errno);
  const FileDescriptor closer(fd);
  if (retry_interrupted([fd] { return ::fsync(fd); }) != 0 && errno != EINVAL && errno != EROFS)
    throw_io(directory, "cannot sync", errno);
}

// Syncs all of a file system on a local disk, which takes as long as a few of its files. Others may not wait
// for their server. Returns whether it did.
static bool sync_file_system(const std::filesystem::path& directory) {
  const FileDescriptor file(open_descriptor(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr std::array<std::int64_t, 3> kLocal = {0xEF53, 0x58465342, 0x9123683E};  // ext4, XFS, Btrfs
  struct statfs info {};
  if (file.get() < 0 || ::fstatfs(file.get(), &info) != 0) return false;
  if (std::ranges::find(kLocal, static_cast<std::int64_t>(info.f_type)) == kLocal.end()) return false;
  if (::syncfs(file.get()) != 0) throw_io(directory, "cannot sync", errno);
  return true;
}

static bool are_on_one_device(std::span<const std::filesystem::path> files) {
  std::set<dev_t> devices;
  for (const std::filesystem::path& file : files) {
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0) devices.insert(info.st_dev);
  }
  return devices.size() == 1;
}

void sync_files(std::span<const std::filesystem::path> files) {
  constexpr std::size_t kMany = 100;
  if (files.size() > kMany && are_on_one_device(files) && sync_file_system(directory_of(files.front())))
    return;
  std::vector<std::pair<std::filesystem::path, FileDescriptor>> open;
  const auto sync_open = [&open] {
    for (const auto& [path, file] : open) sync_open_file(file.get(), path);
    open.clear();
  };
  std::set<std::filesystem::path> directories;
  for (const std::filesystem::path& path : files) {
    constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
    int fd = open_descriptor(path, kFlags);
    if (fd < 0 && errno == EMFILE && !open.empty()) {
      sync_open();
      fd = open_descriptor(path, kFlags);
    }
    if (fd < 0 && (errno == ENOENT || errno == EACCES)) continue;  // Others' files may be in the way.
    if (fd < 0) throw_io(path, "cannot sync", errno);
    open.emplace_back(path, fd);
    directories.insert(directory_of(path));
    // Starts writing back every file before the first fsync() waits for one.
    ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (open.size() == kMaxOpenFiles) sync_open();
  }
  sync_open();
  for (const std::filesystem::path& directory : directories) sync_directory(directory);
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& start) {
  std::string name = start.string() + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    throw IoError(start.string() + ": cannot create: " + std::strerror(errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sweep
