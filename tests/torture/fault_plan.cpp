#include "fault_plan.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fault {
namespace {

enum class Action { kNone, kKillBefore, kKillAfter, kKillBoth, kFail, kShort };
struct Plan {
  Action action = Action::kNone;
  bool always = false;  // also of every later call
  char function[16] = "";
  long at = 0;
  const char* directory = nullptr;
  const char* mark = nullptr;
  int error = EIO;
};

Plan plan;
std::atomic<long> calls{0};
std::atomic<bool> ready{false};
std::atomic<bool> begun{false};
constexpr int kMaxFiles = 4096;
std::atomic<bool> watched[kMaxFiles];

__attribute__((constructor)) void read_plan() {
  const char* text = std::getenv("SWEEP_FAULT");
  if (text == nullptr) return;
  char role[16] = "", action[16] = "";
  if (std::sscanf(text, "%15[^:]:%15[^:]:%15[^:]:%ld", role, action, plan.function, &plan.at) != 4) {
    std::fprintf(stderr, "torture_shim: cannot read SWEEP_FAULT=%s\n", text);
    std::abort();
  }
  if (is_worker() != (std::strcmp(role, "worker") == 0)) return;
  constexpr struct {
    const char* name;
    Action action;
    bool always;
  } kActions[] = {{"kill-before", Action::kKillBefore, false}, {"kill-after", Action::kKillAfter, false},
                  {"kill-both", Action::kKillBoth, false},     {"fail-once", Action::kFail, false},
                  {"fail-always", Action::kFail, true},        {"short-once", Action::kShort, false},
                  {"short-always", Action::kShort, true}};
  for (const auto& known : kActions) {
    if (std::strcmp(action, known.name) != 0) continue;
    plan.action = known.action;
    plan.always = known.always;
  }
  plan.directory = std::getenv("SWEEP_FAULT_DIR");
  plan.mark = std::getenv("SWEEP_FAULT_MARK");
  if (const char* error = std::getenv("SWEEP_FAULT_ERRNO")) plan.error = std::atoi(error);
  ready = true;
}

// Without the functions below, which are the program's.
void leave_mark() {
  if (plan.mark == nullptr) return;
  const int before = errno;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, plan.mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) ::syscall(SYS_close, fd);
  errno = before;
}

[[noreturn]] void die() {
  for (;;) ::syscall(SYS_kill, ::getpid(), SIGKILL);
}

bool is_planned(const char* function) { return ready && std::strcmp(function, plan.function) == 0; }

// Counts a call of the planned function. Does not return if that is to end the program.
Fate count() {
  const long call = ++calls;
  if (call < plan.at || (call > plan.at && !plan.always)) return Fate::kPass;
  if (call == plan.at && plan.action != Action::kKillAfter) leave_mark();
  if (plan.action == Action::kKillBoth) ::syscall(SYS_kill, ::getppid(), SIGKILL);
  if (plan.action == Action::kKillBefore || plan.action == Action::kKillBoth) die();
  return plan.action == Action::kFail    ? Fate::kFail
         : plan.action == Action::kShort ? Fate::kShort
                                         : Fate::kPass;
}

// ---- memory, by the stacks that ask for it ----

constexpr std::size_t kStacks = 1 << 16;
std::atomic<std::uint64_t> stacks[kStacks];
__attribute__((tls_model("initial-exec"))) thread_local bool is_unwinding = false;

struct StackHash {
  std::uint64_t value = 1469598103934665603u;  // FNV-1a
  int frames = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  constexpr int kMaxFrames = 6;  // deep enough to tell the program's own callers of a library's function
  auto& hash = *static_cast<StackHash*>(argument);
  hash.value = (hash.value ^ _Unwind_GetIP(context)) * 1099511628211u;
  return ++hash.frames == kMaxFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool is_new_stack() {
  StackHash hash;
  is_unwinding = true;
  _Unwind_Backtrace(add_frame, &hash);
  is_unwinding = false;
  for (std::size_t i = hash.value % kStacks, tries = 0; tries < kStacks; i = (i + 1) % kStacks, ++tries) {
    std::uint64_t none = 0;
    if (stacks[i].compare_exchange_strong(none, hash.value)) return true;
    if (none == hash.value) return false;
  }
  return false;
}

}  // namespace

Fate before(const char* function) {
  if (ready) begun = true;
  return is_planned(function) ? count() : Fate::kPass;
}

void after(const char* function) {
  if (!is_planned(function) || plan.action != Action::kKillAfter || calls != plan.at) return;
  leave_mark();
  die();
}

bool has_no_memory() {
  if (!begun || is_unwinding) return false;
  const bool counts = is_planned("malloc") || (is_planned("stack") && is_new_stack());
  if (!counts || count() != Fate::kFail) return false;
  errno = ENOMEM;
  return true;
}

bool has_begun() { return begun; }

int planned_error() { return plan.error; }

bool is_worker() {
  char text[4096];
  const long fd = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const long length = ::syscall(SYS_read, fd, text, sizeof text - 1);
  ::syscall(SYS_close, fd);
  if (length <= 0) return false;
  text[length] = '\0';
  const std::size_t first = std::strlen(text) + 1;
  return static_cast<long>(first) < length && std::strcmp(text + first, "worker") == 0;
}

bool is_watched(int fd) { return fd >= 0 && fd < kMaxFiles && watched[fd]; }
void watch(int fd, bool value) {
  if (fd >= 0 && fd < kMaxFiles) watched[fd] = value;
}

bool is_below(const char* path) {
  if (!ready || plan.directory == nullptr) return ready;
  if (path[0] == '/') return std::strncmp(path, plan.directory, std::strlen(plan.directory)) == 0;
  char absolute[8192];
  if (::getcwd(absolute, 4096) == nullptr) return false;
  std::strncat(absolute, "/", 2);
  std::strncat(absolute, path, 4000);
  return std::strncmp(absolute, plan.directory, std::strlen(plan.directory)) == 0;
}

bool is_below(int at, const char* path) {
  return at == AT_FDCWD || path[0] == '/' ? is_below(path) : is_watched(at);
}

}  // namespace fault
