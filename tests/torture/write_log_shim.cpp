// Preloaded into a program: logs every change that it makes to files below a directory, so that power cuts
// can be replayed. See power_cuts.py.
//
//   SWEEP_WRITE_LOG=FILE       the log; several processes append to it
//   SWEEP_WRITE_LOG_DIR=PATH   only files below it are logged
//   SWEEP_TIME_SCALE=N         the monotonic clock runs N times as fast, and waits end N times as early
//
// A log entry is a line "OPERATION\tNANOSECONDS\tINODE\tOFFSET\tLENGTH\tPATH\tPATH2\n", LENGTH bytes, and
// "\n":
//   create (a name for a new file), write, truncate (to OFFSET), sync, syncdir, syncfs and syncedfs (its
//   begin and its end), rename, link, unlink, mkdir, rmdir
// An entry is written after the operation has succeeded. Entries of one thread are in order. Of two threads,
// a sync may come before a write that it covered, which makes the replay only more severe.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr long kNanoseconds = 1'000'000'000;

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

// On the heap and never freed, since threads may still use them at the end of the program.
const std::string& directory() {
  static const std::string& path = *new std::string(
      std::getenv("SWEEP_WRITE_LOG_DIR") != nullptr ? std::getenv("SWEEP_WRITE_LOG_DIR") : "");
  return path;
}

long scale() {
  static const long factor =
      std::getenv("SWEEP_TIME_SCALE") != nullptr ? std::atol(std::getenv("SWEEP_TIME_SCALE")) : 1;
  return factor;
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

std::string absolute(const char* path) {
  if (path[0] == '/') return path;
  char here[4096];
  return ::getcwd(here, sizeof here) == nullptr ? "" : std::string(here) + "/" + path;
}

std::string path_of(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

bool is_below(const std::string& path) {
  return log_file() >= 0 && path.size() >= directory().size() &&
         path.compare(0, directory().size(), directory()) == 0;
}

void add(const char* operation, unsigned long inode, long offset, const std::string& path,
         const std::string& path2 = "", const void* data = nullptr, std::size_t size = 0) {
  const int before = errno;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::string line = std::string(operation) + "\t" + std::to_string(now.tv_sec * kNanoseconds + now.tv_nsec) +
                     "\t" + std::to_string(inode) + "\t" + std::to_string(offset) + "\t" +
                     std::to_string(size) + "\t" + path + "\t" + path2 + "\n";
  char end[] = "\n";
  const iovec parts[] = {{line.data(), line.size()}, {const_cast<void*>(data), size}, {end, 1}};
  if (::syscall(SYS_writev, log_file(), parts, 3) < 0) std::abort();
  errno = before;
}

struct stat status_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status;
}

// Around an open(): logs a new file or a truncation.
template <typename Open>
int logged_open(const std::string& path, int flags, const Open& open) {
  const bool writes = (flags & (O_CREAT | O_TRUNC)) != 0 && is_below(path);
  struct stat before {};
  const bool existed = writes && ::lstat(path.c_str(), &before) == 0;
  const int fd = open();
  if (fd < 0 || !writes) return fd;
  const unsigned long inode = status_of(fd).st_ino;
  if (!existed) add("create", inode, 0, path);
  if (existed && (flags & O_TRUNC) != 0) add("truncate", inode, 0, path);
  return fd;
}

int logged_sync(int fd, const char* function) {
  const int result = real<int (*)(int)>(function)(fd);
  const struct stat status = status_of(fd);
  const std::string path = path_of(fd);
  if (result == 0 && is_below(path))
    add(S_ISDIR(status.st_mode) ? "syncdir" : "sync", status.st_ino, 0, path);
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = real<int (*)(const char*, int, ...)>("open");
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return logged_open(absolute(path), flags, [&] { return next(path, flags, mode); });
}

int openat(int at, const char* path, int flags, ...) {
  static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const std::string whole = at == AT_FDCWD || path[0] == '/' ? absolute(path) : path_of(at) + "/" + path;
  return logged_open(whole, flags, [&] { return next(at, path, flags, mode); });
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  const ssize_t written = next(fd, data, size);
  if (written <= 0 || log_file() < 0) return written;
  const int before = errno;
  const struct stat status = status_of(fd);
  if (S_ISREG(status.st_mode)) {
    const std::string path = path_of(fd);
    if (is_below(path))
      add("write", status.st_ino, ::lseek(fd, 0, SEEK_CUR) - written, path, "", data,
          static_cast<std::size_t>(written));
  }
  errno = before;
  return written;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  const ssize_t written = next(fd, data, size, offset);
  const std::string path = written > 0 ? path_of(fd) : "";
  if (!path.empty() && is_below(path))
    add("write", status_of(fd).st_ino, offset, path, "", data, static_cast<std::size_t>(written));
  return written;
}

int ftruncate(int fd, off_t size) {
  static const auto next = real<int (*)(int, off_t)>("ftruncate");
  const int result = next(fd, size);
  const std::string path = path_of(fd);
  if (result == 0 && is_below(path)) add("truncate", status_of(fd).st_ino, size, path);
  return result;
}

int truncate(const char* path, off_t size) {
  static const auto next = real<int (*)(const char*, off_t)>("truncate");
  const int result = next(path, size);
  struct stat status {};
  if (result == 0 && is_below(absolute(path)) && ::stat(path, &status) == 0)
    add("truncate", status.st_ino, size, absolute(path));
  return result;
}

int fsync(int fd) { return logged_sync(fd, "fsync"); }

int fdatasync(int fd) { return logged_sync(fd, "fdatasync"); }

int syncfs(int fd) {
  const std::string path = path_of(fd);
  if (is_below(path)) add("syncfs", 0, 0, path);
  const int result = real<int (*)(int)>("syncfs")(fd);
  if (result == 0 && is_below(path)) add("syncedfs", 0, 0, path);
  return result;
}

#define SWEEP_LOGGED(function, parameters, arguments, changed, ...)                    \
  int function parameters {                                                            \
    static const auto next = real<int(*) parameters>(#function);                       \
    const int result = next arguments;                                                 \
    if (result == 0 && is_below(absolute(changed))) add(#function, 0, 0, __VA_ARGS__); \
    return result;                                                                     \
  }
SWEEP_LOGGED(rename, (const char* from, const char* to), (from, to), to, absolute(from), absolute(to))
SWEEP_LOGGED(link, (const char* from, const char* to), (from, to), to, absolute(from), absolute(to))
SWEEP_LOGGED(unlink, (const char* path), (path), path, absolute(path))
SWEEP_LOGGED(mkdir, (const char* path, mode_t mode), (path, mode), path, absolute(path))
#undef SWEEP_LOGGED

int unlinkat(int at, const char* path, int flags) {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  const std::string whole = at == AT_FDCWD || path[0] == '/' ? absolute(path) : path_of(at) + "/" + path;
  const int result = next(at, path, flags);
  if (result == 0 && is_below(whole)) add((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", 0, 0, whole);
  return result;
}

int remove(const char* path) {
  static const auto next = real<int (*)(const char*)>("remove");
  struct stat status {};
  const bool is_directory = ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  const int result = next(path);
  if (result == 0 && is_below(absolute(path))) add(is_directory ? "rmdir" : "unlink", 0, 0, absolute(path));
  return result;
}

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto next = real<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC || scale() == 1) return result;
  const long fast = (time->tv_sec * kNanoseconds + time->tv_nsec) * scale();
  *time = {fast / kNanoseconds, fast % kNanoseconds};
  return 0;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  static const auto next =
      real<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  if (clock != CLOCK_MONOTONIC || scale() == 1) return next(condition, mutex, clock, until);
  // Seconds and nanoseconds apart, since a deadline may be centuries away.
  const long slow = until->tv_sec / scale(),
             rest = (until->tv_sec % scale() * kNanoseconds + until->tv_nsec) / scale();
  const timespec real_until = {slow, rest};
  return next(condition, mutex, clock, &real_until);
}

}  // extern "C"
