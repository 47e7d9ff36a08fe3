#include "runmanager/sweep/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "runmanager/sweep/worker.h"

namespace sweep {
namespace {

// "SIGSEGV". The C library's names lack the prefix.
std::string name_of_signal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe_end(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kWorkerOutOfMemory) return "out of memory";
  if (WIFEXITED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  // This process does not ask for the reason after killing a worker itself, so it was somebody else.
  const char* hint = signal == SIGKILL ? " (by hand, or by the kernel for want of memory)" : "";
  return fmt::format("killed by {}{}", name_of_signal(signal), hint);
}

class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t none, handled;
    ::sigemptyset(&none);
    ::sigemptyset(&handled);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE})
      ::sigaddset(&handled, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &handled);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
  }
  ~SpawnAttributes() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  // Duplicating a descriptor onto itself clears its close-on-exec flag, in the child only.
  void inherit(int fd) { ::posix_spawn_file_actions_adddup2(&actions_, fd, fd); }

  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

WorkerProcess WorkerProcess::start(const WorkerCommand& command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw IoError(fmt::format("cannot make a connection to a worker: {}", std::strerror(errno)));
  MessageSocket ours(ends[0]);
  const MessageSocket theirs(ends[1]);

  SpawnAttributes spawn;
  spawn.inherit(theirs.fd());
  for (const int fd : command.inherited) spawn.inherit(fd);
  std::vector<std::string> words = command.words;
  words.push_back(std::to_string(theirs.fd()));
  words.push_back(std::to_string(::getpid()));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, arguments[0], &spawn.actions_, &spawn.attributes_, arguments.data(), environ);
  if (error != 0)
    throw IoError(fmt::format("cannot start a worker ({}): {}", words[0], std::strerror(error)));
  return {pid, std::move(ours)};
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), socket_(std::move(other.socket_)) {}

WorkerProcess::~WorkerProcess() { kill(); }

void WorkerProcess::kill() {
  if (pid_ == 0) return;
  if (::kill(pid_, SIGKILL) == 0) {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  } else {
    wait_for_end_without_signal();
  }
  pid_ = 0;
}

// A worker that cannot be killed ends by itself once its socket is closed. One that hangs is left behind: it
// ends with this process at the latest (PR_SET_PDEATHSIG).
void WorkerProcess::wait_for_end_without_signal() {
  constexpr int kTries = 400;  // 5 ms each
  ::shutdown(socket_.fd(), SHUT_RDWR);
  for (int tries = 0; tries < kTries; ++tries) {
    const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) return;
    ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string WorkerProcess::exit_reason() {
  if (pid_ == 0) return "ended";
  constexpr int kTries = 200;  // 5 ms each
  int status = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return describe_end(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill();
  return "closed its connection and had to be killed";
}

}  // namespace sweep
