// Preloaded into a program: makes its N-th call of a function on a file fail, or kills the program before or
// after it.
//
//   SWEEP_FAULT=ROLE:ACTION:FUNCTION:N
//     ROLE       parent or worker; a worker is a process with "worker" as its first argument
//     ACTION     kill-before, kill-after, kill-both (with the parent process), fail-once, fail-always
//     FUNCTION   write, fsync, rename, open, close, ftruncate, malloc
//     N          counts from 1; mallocs count only after a file was opened, because before main() a program
//     cannot report
//                what is wrong
//   SWEEP_FAULT_DIR=PATH     only files below it count
//   SWEEP_FAULT_ERRNO=28     errno of failing calls; default EIO, of malloc always ENOMEM
//   SWEEP_FAULT_MARK=FILE    is created when a call was struck
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_malloc(std::size_t);

namespace {

enum class Action { kNone, kKillBefore, kKillAfter, kKillBoth, kFailOnce, kFailAlways };

struct Plan {
  Action action = Action::kNone;
  char function[16] = "";
  long at = 0;
  const char* directory = nullptr;
  const char* mark = nullptr;
  int error = EIO;
};

Plan plan;
std::atomic<long> calls{0};
std::atomic<bool> ready{false};
std::atomic<bool> has_opened{false};
constexpr int kMostFiles = 4096;
std::atomic<bool> watched[kMostFiles];

bool is_worker() {
  char text[4096];
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  const std::size_t first = std::strlen(text) + 1;
  return static_cast<ssize_t>(first) < length && std::strcmp(text + first, "worker") == 0;
}

__attribute__((constructor)) void read_plan() {
  const char* text = std::getenv("SWEEP_FAULT");
  if (text == nullptr) return;
  char role[16] = "", action[16] = "";
  if (std::sscanf(text, "%15[^:]:%15[^:]:%15[^:]:%ld", role, action, plan.function, &plan.at) != 4) {
    std::fprintf(stderr, "fault_shim: cannot read SWEEP_FAULT=%s\n", text);
    std::abort();
  }
  if (is_worker() != (std::strcmp(role, "worker") == 0)) return;
  constexpr struct {
    const char* name;
    Action action;
  } kActions[] = {{"kill-before", Action::kKillBefore},
                  {"kill-after", Action::kKillAfter},
                  {"kill-both", Action::kKillBoth},
                  {"fail-once", Action::kFailOnce},
                  {"fail-always", Action::kFailAlways}};
  for (const auto& known : kActions) {
    if (std::strcmp(action, known.name) == 0) plan.action = known.action;
  }
  plan.directory = std::getenv("SWEEP_FAULT_DIR");
  plan.mark = std::getenv("SWEEP_FAULT_MARK");
  if (const char* error = std::getenv("SWEEP_FAULT_ERRNO")) plan.error = std::atoi(error);
  ready = true;
}

// Around the functions below, which are the program's.
void leave_mark() {
  if (plan.mark == nullptr) return;
  const int before = errno;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, plan.mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) ::syscall(SYS_close, fd);
  errno = before;
}

// Whether this call is to fail; does not return if it is to end the program.
bool strikes(const char* function, bool before) {
  if (!ready || std::strcmp(function, plan.function) != 0) return false;
  if (!before) {
    if (plan.action == Action::kKillAfter && calls == plan.at) {
      leave_mark();
      ::kill(::getpid(), SIGKILL);
    }
    return false;
  }
  const long call = ++calls;
  if (call < plan.at) return false;
  if (call == plan.at && plan.action != Action::kKillAfter) leave_mark();
  if (plan.action == Action::kFailAlways) return true;
  if (call > plan.at) return false;
  if (plan.action == Action::kKillBoth) ::kill(::getppid(), SIGKILL);
  if (plan.action == Action::kKillBefore || plan.action == Action::kKillBoth) ::kill(::getpid(), SIGKILL);
  return plan.action == Action::kFailOnce;
}

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

bool is_watched(int fd) { return fd >= 0 && fd < kMostFiles && watched[fd]; }

bool is_below(const char* path) {
  if (!ready || plan.directory == nullptr) return ready;
  if (path[0] == '/') return std::strncmp(path, plan.directory, std::strlen(plan.directory)) == 0;
  char absolute[8192];
  if (::getcwd(absolute, 4096) == nullptr) return false;
  std::strncat(absolute, "/", 2);
  std::strncat(absolute, path, 4000);
  return std::strncmp(absolute, plan.directory, std::strlen(plan.directory)) == 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = real<int (*)(const char*, int, ...)>("open");
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool counts = is_below(path);
  if (counts && strikes("open", true)) {
    errno = plan.error;
    return -1;
  }
  const int fd = next(path, flags, mode);
  if (counts) has_opened = true;
  if (counts && fd >= 0 && fd < kMostFiles) watched[fd] = true;
  if (counts) strikes("open", false);
  return fd;
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (!is_watched(fd)) return next(fd, data, size);
  if (strikes("write", true)) {
    errno = plan.error;
    // What fails half-way leaves half a record behind.
    if (size > 8 && plan.error == ENOSPC) return next(fd, data, size / 2) > 0 ? (errno = ENOSPC, -1) : -1;
    return -1;
  }
  const ssize_t written = next(fd, data, size);
  strikes("write", false);
  return written;
}

int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  if (is_watched(fd) && strikes("fsync", true)) return errno = plan.error, -1;
  const int result = next(fd);
  if (is_watched(fd)) strikes("fsync", false);
  return result;
}

int ftruncate(int fd, off_t size) {
  static const auto next = real<int (*)(int, off_t)>("ftruncate");
  if (is_watched(fd) && strikes("ftruncate", true)) return errno = plan.error, -1;
  const int result = next(fd, size);
  if (is_watched(fd)) strikes("ftruncate", false);
  return result;
}

int close(int fd) {
  static const auto next = real<int (*)(int)>("close");
  const bool counts = is_watched(fd);
  const bool fails = counts && strikes("close", true);
  if (counts) watched[fd] = false;
  const int result = next(fd);  // Also a close that fails has closed.
  if (fails) return errno = plan.error, -1;
  if (counts) strikes("close", false);
  return result;
}

int rename(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  const bool counts = is_below(to);
  if (counts && strikes("rename", true)) return errno = plan.error, -1;
  const int result = next(from, to);
  if (counts) strikes("rename", false);
  return result;
}

void* malloc(size_t size) {
  if (has_opened && strikes("malloc", true)) return errno = ENOMEM, nullptr;
  return __libc_malloc(size);
}

}  // extern "C"
