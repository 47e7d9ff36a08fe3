#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

[[noreturn]] void throw_io(const std::filesystem::path& path, const char* problem, int error) {
  throw IoError(path.string() + ": " + problem + ": " + std::strerror(error));
}

struct FileCloser {
  explicit FileCloser(int file) : fd(file) {}
  FileCloser(const FileCloser&) = delete;
  FileCloser& operator=(const FileCloser&) = delete;
  ~FileCloser() { ::close(fd); }
  int fd;
};

// Closes the descriptor and removes the file unless release() was called.
class TemporaryFile {
 public:
  TemporaryFile(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  int fd() const { return fd_; }
  /// Closes now, so that an error of close() can be reported.
  int close() { return ::close(std::exchange(fd_, -1)); }
  void release() { path_.clear(); }

 private:
  int fd_;
  std::filesystem::path path_;
};

constexpr std::size_t kMaxOpenFiles = 32;  // of sync_files(), far below any limit of descriptors

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

void sync_open_file(int fd, const std::filesystem::path& path) {
  if (::fsync(fd) != 0) throw_io(path, "cannot sync", errno);
}

void sync_directory(const std::filesystem::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // A directory without read permission cannot be synced; the rename has happened.
  const FileCloser closer(fd);
  ::fsync(fd);
}

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_io(path, "cannot write", errno);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw DataError(path.string() + ": cannot open: " + std::strerror(errno));
  const FileCloser closer(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw DataError(path.string() + ": cannot read: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw DataError(path.string() + ": is not a regular file");
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t size = 0;
  for (;;) {
    if (size == content.size())
      content.resize(size + 4096);  // it grew, or stat() reports size 0, as in /proc
    const ssize_t got = ::read(fd, content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(path.string() + ": cannot read: " + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content, Survives survives) {
  write_file_atomically(path, std::span(&content, 1), survives);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts,
                           Survives survives) {
  // The process id keeps concurrent programs apart; the fixed suffix identifies leftovers of a killed one.
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw_io(path, "cannot create", errno);
  TemporaryFile file(fd, temporary);
  for (const std::string_view part : parts) write_all(file.fd(), part, path);
  if (survives == Survives::kPowerCut && ::fsync(file.fd()) != 0) throw_io(path, "cannot sync", errno);
  if (file.close() != 0) throw_io(path, "cannot close", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw_io(path, "cannot replace", errno);
  file.release();
  if (survives == Survives::kPowerCut) sync_directory(directory_of(path));
}

void sync_files(std::span<const std::filesystem::path> files) {
  struct OpenFile {
    OpenFile(const std::filesystem::path& p, int fd) : path(p), file(fd) {}
    const std::filesystem::path& path;
    FileCloser file;
  };
  std::deque<OpenFile> open;
  std::set<std::filesystem::path> directories;
  for (const std::filesystem::path& path : files) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) throw_io(path, "cannot sync", errno);
    open.emplace_back(path, fd);
    directories.insert(directory_of(path));
    // Starts writing back every file before the first fsync() waits for one.
    ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (open.size() == kMaxOpenFiles) {
      for (const OpenFile& file : open) sync_open_file(file.file.fd, file.path);
      open.clear();
    }
  }
  for (const OpenFile& file : open) sync_open_file(file.file.fd, file.path);
  for (const std::filesystem::path& directory : directories) sync_directory(directory);
}

}  // namespace sweep
