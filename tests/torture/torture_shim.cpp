// Preloaded into a program. Makes its N-th call of a function fail or fall short, or kills the program before
// or after it; see fault_plan.h. Logs its changes to files; see write_log.h. And:
//
// - SWEEP_SLOW_MILLISECONDS=N: a worker sleeps so long before it tells the sweep anything, about three times
//   an epoch, so that many can be in the middle of a run on a small machine
// - SWEEP_TIME_SCALE=N: the monotonic clock runs N times as fast, and waits end N times as early
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "fault_plan.h"
#include "write_log.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names of glibc's own functions
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}
// NOLINTEND(bugprone-reserved-identifier)

using fault::after, fault::before, fault::Fate, fault::has_no_memory, fault::is_below, fault::is_watched,
    fault::watch, write_log::absolute;

namespace {

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

// A call that returns -1 with errno, or what `call` returns.
template <typename Call>
auto checked(const char* function, bool counts, const Call& call) -> decltype(call()) {
  if (counts && before(function) == Fate::kFail) {
    errno = fault::planned_error();
    return decltype(call())(-1);
  }
  const auto result = call();
  if (counts) after(function);
  return result;
}

// The same for one that passes `size` bytes, or half of them.
template <typename Call>
ssize_t passed(const char* function, bool counts, std::size_t size, const Call& call) {
  const Fate fate = counts ? before(function) : Fate::kPass;
  if (fate == Fate::kFail) {
    // What fails half-way leaves half a record behind.
    if (size > 8 && fault::planned_error() == ENOSPC) call(size / 2);
    errno = fault::planned_error();
    return -1;
  }
  const ssize_t done = call(fate == Fate::kShort && size > 1 ? size / 2 : size);
  if (counts) after(function);
  return done;
}

template <typename Call>
int opened(const char* function, bool counts, const Call& call) {
  const int fd = checked(function, counts, call);
  if (counts) watch(fd);
  return fd;
}

bool is_regular(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

struct stat status_of(const char* path) {
  struct stat status {};
  ::lstat(path, &status);
  return status;
}

long number_in(const char* variable, long by_default) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atol(text) : by_default;
}

constexpr long kNanoseconds = 1'000'000'000;

long time_scale() {
  static const long factor = number_in("SWEEP_TIME_SCALE", 1);
  return factor;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = real<decltype(open)*>("open");
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return write_log::opened(path, AT_FDCWD, flags, [&] {
    return opened("open", is_below(path), [&] { return next(path, flags, mode); });
  });
}

int openat(int at, const char* path, int flags, ...) {
  static const auto next = real<decltype(openat)*>("openat");
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return write_log::opened(path, at, flags, [&] {
    return opened((flags & O_DIRECTORY) != 0 ? "opendir" : "open", is_below(at, path),
                  [&] { return next(at, path, flags, mode); });
  });
}

FILE* fopen64(const char* path, const char* mode) {
  static const auto next = real<decltype(fopen64)*>("fopen64");
  const bool counts = is_below(path);
  FILE* file = nullptr;
  // For its descriptor: libstdc++ reads and writes without the buffer of stdio.
  opened("fopen", counts, [&] { return (file = next(path, mode)) != nullptr ? ::fileno(file) : -1; });
  return file;
}

int memfd_create(const char* name, unsigned flags) {
  static const auto next = real<decltype(memfd_create)*>("memfd_create");
  return opened("memfd_create", true, [&] { return next(name, flags); });
}

int socketpair(int domain, int type, int protocol, int* ends) {
  static const auto next = real<decltype(socketpair)*>("socketpair");
  const int result = checked("socketpair", true, [&] { return next(domain, type, protocol, ends); });
  for (int i = 0; i < 2 && result == 0; ++i) watch(ends[i]);
  return result;
}

int close(int fd) {
  static const auto next = real<decltype(close)*>("close");
  const bool counts = is_watched(fd), fails = counts && before("close") == Fate::kFail;
  watch(fd, false);
  const int result = next(fd);  // Also a close that fails has closed.
  if (fails) return errno = fault::planned_error(), -1;
  if (counts) after("close");
  return result;
}

// `offset`: of the file, where it was written; not counted if the rest is not.
#define SWEEP_PASSED(function, called, parameters, arguments, offset)                                       \
  ssize_t function parameters {                                                                             \
    static const auto next = real<decltype(function)*>(#function);                                          \
    const ssize_t done = passed(called, is_watched(fd), size, [&](size_t part) { return next arguments; }); \
    if ((called)[0] != 'r' && done > 0 && write_log::is_on() && is_regular(fd))                             \
      write_log::add("write", fd, offset, data, static_cast<std::size_t>(done));                            \
    return done;                                                                                            \
  }
SWEEP_PASSED(read, "read", (int fd, void* data, size_t size), (fd, data, part), 0)
SWEEP_PASSED(pread, "read", (int fd, void* data, size_t size, off_t at), (fd, data, part, at), 0)
SWEEP_PASSED(write, "write", (int fd, const void* data, size_t size), (fd, data, part),
             ::lseek(fd, 0, SEEK_CUR) - done)
SWEEP_PASSED(pwrite, "pwrite", (int fd, const void* data, size_t size, off_t at), (fd, data, part, at), at)
#undef SWEEP_PASSED

// Functions that return -1 with errno, the name by which a plan calls them, and what is logged if they return
// 0; "" for nothing.
#define SWEEP_CHECKED(type, function, called, counts, parameters, arguments, ...) \
  type function parameters {                                                      \
    static const auto next = real<decltype(function)*>(#function);                \
    const type result = checked(called, counts, [&] { return next arguments; });  \
    if (result == 0 && write_log::is_on()) __VA_ARGS__;                           \
    return result;                                                                \
  }
SWEEP_CHECKED(int, fsync, "fsync", is_watched(fd), (int fd), (fd),
              write_log::add(is_regular(fd) ? "sync" : "syncdir", fd))
SWEEP_CHECKED(int, fdatasync, "fsync", is_watched(fd), (int fd), (fd),
              write_log::add(is_regular(fd) ? "sync" : "syncdir", fd))
SWEEP_CHECKED(int, ftruncate, "ftruncate", is_watched(fd), (int fd, off_t size), (fd, size),
              write_log::add("truncate", fd, size))
SWEEP_CHECKED(int, truncate, "ftruncate", is_below(path), (const char* path, off_t size), (path, size),
              write_log::add("truncate", status_of(path).st_ino, size, absolute(path)))
SWEEP_CHECKED(int, flock, "flock", is_watched(fd), (int fd, int operation), (fd, operation), {})
SWEEP_CHECKED(int, rename, "rename", is_below(to), (const char* from, const char* to), (from, to),
              write_log::add("rename", 0, 0, absolute(from), absolute(to)))
SWEEP_CHECKED(int, link, "link", is_below(to), (const char* from, const char* to), (from, to),
              write_log::add("link", 0, 0, absolute(from), absolute(to)))
SWEEP_CHECKED(int, unlink, "unlink", is_below(path), (const char* path), (path),
              write_log::add("unlink", 0, 0, absolute(path)))
SWEEP_CHECKED(int, unlinkat, "unlink", is_below(at, path), (int at, const char* path, int flags),
              (at, path, flags),
              write_log::add((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", 0, 0, absolute(path, at)))
SWEEP_CHECKED(int, mkdir, "mkdir", is_below(path), (const char* path, mode_t mode), (path, mode),
              write_log::add("mkdir", 0, 0, absolute(path)))
SWEEP_CHECKED(int, poll, "poll", true, (pollfd * descriptors, nfds_t count, int timeout),
              (descriptors, count, timeout), {})
SWEEP_CHECKED(int, kill, "kill", true, (pid_t process, int signal), (process, signal), {})
SWEEP_CHECKED(pid_t, waitpid, "waitpid", true, (pid_t process, int* status, int options),
              (process, status, options), {})
#undef SWEEP_CHECKED

int syncfs(int fd) {
  static const auto next = real<decltype(syncfs)*>("syncfs");
  if (write_log::is_on()) write_log::add("syncfs", 0, 0, write_log::path_of(fd));
  const int result = checked("fsync", is_watched(fd), [&] { return next(fd); });
  if (result == 0 && write_log::is_on()) write_log::add("syncedfs", 0, 0, write_log::path_of(fd));
  return result;
}

int remove(const char* path) {
  static const auto next = real<decltype(remove)*>("remove");
  const bool is_directory = write_log::is_on() && S_ISDIR(status_of(path).st_mode);
  const int result = checked("unlink", is_below(path), [&] { return next(path); });
  if (result == 0 && write_log::is_on())
    write_log::add(is_directory ? "rmdir" : "unlink", 0, 0, absolute(path));
  return result;
}

// For messages with one part, as those between a sweep and its workers are.
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next = real<decltype(sendmsg)*>("sendmsg");
  static const long slow = fault::is_worker() ? number_in("SWEEP_SLOW_MILLISECONDS", 0) : 0;
  if (slow > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow));
  return passed("sendmsg", true, message->msg_iov->iov_len, [&](size_t size) {
    iovec part = {message->msg_iov->iov_base, size};
    msghdr cut = *message;
    cut.msg_iov = &part;
    return next(fd, &cut, flags);
  });
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = real<decltype(recvmsg)*>("recvmsg");
  return passed("recvmsg", true, message->msg_iov->iov_len, [&](size_t size) {
    message->msg_iov->iov_len = size;
    return next(fd, message, flags);
  });
}

struct dirent* readdir(DIR* directory) {
  static const auto next = real<decltype(readdir)*>("readdir");
  const bool counts = is_watched(::dirfd(directory));
  if (counts && before("readdir") == Fate::kFail) return errno = fault::planned_error(), nullptr;
  struct dirent* const entry = next(directory);
  if (counts) after("readdir");
  return entry;
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  static const auto next = real<decltype(mmap)*>("mmap");
  if (fault::has_begun() && before("mmap") == Fate::kFail) return errno = fault::planned_error(), MAP_FAILED;
  return next(address, size, protection, flags, fd, offset);
}

// These two return the error.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*),
                   void* argument) {
  static const auto next = real<decltype(pthread_create)*>("pthread_create");
  if (before("clone") == Fate::kFail) return fault::planned_error();
  return next(thread, attributes, begin, argument);
}

// A child made with vfork() could not return from here.
pid_t fork() {
  static const auto next = real<decltype(fork)*>("fork");
  if (before("fork") == Fate::kFail) {
    errno = fault::planned_error();
    return -1;
  }
  const pid_t child = next();
  if (child != 0) after("fork");
  return child;
}
pid_t vfork() { return fork(); }

void* malloc(size_t size) { return has_no_memory() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return has_no_memory() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return has_no_memory() ? nullptr : __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return has_no_memory() ? nullptr : __libc_memalign(alignment, size);
}

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto next = real<decltype(clock_gettime)*>("clock_gettime");
  const int result = next(clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC || time_scale() == 1) return result;
  const long fast = (time->tv_sec * kNanoseconds + time->tv_nsec) * time_scale();
  *time = {fast / kNanoseconds, fast % kNanoseconds};
  return 0;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  static const auto next = real<decltype(pthread_cond_clockwait)*>("pthread_cond_clockwait");
  if (clock != CLOCK_MONOTONIC || time_scale() == 1) return next(condition, mutex, clock, until);
  // Seconds and nanoseconds apart, since a deadline may be centuries away.
  const long slow = until->tv_sec / time_scale(),
             rest = (until->tv_sec % time_scale() * kNanoseconds + until->tv_nsec) / time_scale();
  const timespec real_until = {slow, rest};
  return next(condition, mutex, clock, &real_until);
}

}  // extern "C"
