#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

[[noreturn]] void throw_io(const std::filesystem::path& path, const char* what, int error) {
  throw IoError(path.string() + ": " + what + ": " + std::strerror(error));
}

struct FileCloser {
  int fd;
  ~FileCloser() { ::close(fd); }
};

// Closes a descriptor and removes the file again unless release() was called.
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
  const FileCloser closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw DataError(path.string() + ": cannot read: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw DataError(path.string() + ": is not a regular file");
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t size = 0;
  for (;;) {
    if (size == content.size())
      content.resize(size + 4096);  // it grew, or its size was not known, as in /proc
    const ssize_t got = ::read(fd, content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(path.string() + ": cannot read: " + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  // The process id keeps two programs apart; a fixed suffix makes leftovers of a killed one recognisable.
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw_io(path, "cannot create", errno);
  TemporaryFile file(fd, temporary);
  write_all(file.fd(), content, path);
  if (::fsync(file.fd()) != 0) throw_io(path, "cannot sync", errno);
  if (file.close() != 0) throw_io(path, "cannot close", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw_io(path, "cannot replace", errno);
  file.release();

  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const int directory_fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0)
    return;  // A directory that may be written but not read: the rename has still happened.
  ::fsync(directory_fd);
  ::close(directory_fd);
}

}  // namespace sweep
