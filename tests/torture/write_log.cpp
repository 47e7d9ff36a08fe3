#include "write_log.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace write_log {
namespace {

// On the heap and never freed, since threads may still use them at the end of the program.
const std::string& directory() {
  static const std::string& path = *new std::string(
      std::getenv("SWEEP_WRITE_LOG_DIR") != nullptr ? std::getenv("SWEEP_WRITE_LOG_DIR") : "");
  return path;
}

int log_file() {
  static const int fd = [] {
    const char* path = std::getenv("SWEEP_WRITE_LOG");
    if (path == nullptr) return -1;
    const long opened =
        ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    // Far away from the numbers that programs redirect.
    return opened < 0 ? -1 : ::fcntl(static_cast<int>(opened), F_DUPFD_CLOEXEC, 500);
  }();
  return fd;
}

}  // namespace

bool is_on() { return log_file() >= 0; }

std::string path_of(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

std::string absolute(const char* path, int at) {
  if (path[0] == '/') return path;
  if (at != AT_FDCWD) return path_of(at) + "/" + path;
  char here[4096];
  return ::getcwd(here, sizeof here) == nullptr ? "" : std::string(here) + "/" + path;
}

unsigned long inode_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status.st_ino;
}

void add(const char* operation, unsigned long inode, long offset, const std::string& path,
         const std::string& path2, const void* data, std::size_t size) {
  const std::string& changed = path2.empty() ? path : path2;
  if (changed.compare(0, directory().size(), directory()) != 0) return;
  const int before = errno;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::string line = std::string(operation) + "\t" +
                     std::to_string(now.tv_sec * 1'000'000'000 + now.tv_nsec) + "\t" + std::to_string(inode) +
                     "\t" + std::to_string(offset) + "\t" + std::to_string(size) + "\t" + path + "\t" +
                     path2 + "\n";
  char end[] = "\n";
  const iovec parts[] = {{line.data(), line.size()}, {const_cast<void*>(data), size}, {end, 1}};
  if (::syscall(SYS_writev, log_file(), parts, 3) < 0) std::abort();
  errno = before;
}

void add(const char* operation, int fd, long offset, const void* data, std::size_t size) {
  const int before = errno;
  add(operation, inode_of(fd), offset, path_of(fd), "", data, size);
  errno = before;
}

}  // namespace write_log
