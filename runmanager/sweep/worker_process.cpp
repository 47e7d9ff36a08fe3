#include "runmanager/sweep/worker_process.h"

#include <fmt/format.h>
#include <signal.h>
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
#include "core/base/spawn.h"
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

}  // namespace

WorkerProcess WorkerProcess::start(const WorkerCommand& command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw IoError(fmt::format("cannot make a connection to a worker: {}", std::strerror(errno)));
  MessageSocket ours(ends[0]);
  const MessageSocket theirs(ends[1]);

  Spawn spawn;
  spawn.give(STDERR_FILENO, STDOUT_FILENO);
  spawn.give(theirs.fd(), theirs.fd());
  for (const int fd : command.inherited) spawn.give(fd, fd);
  std::vector<std::string> words = command.words;
  words.push_back(std::to_string(theirs.fd()));
  words.push_back(std::to_string(::getpid()));
  pid_t pid = 0;
  const int error = spawn.start(words, pid);
  if (error != 0)
    throw IoError(fmt::format("cannot start a worker ({}): {}", words[0], std::strerror(error)));
  return {pid, std::move(ours)};
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), socket_(std::move(other.socket_)) {}

WorkerProcess::~WorkerProcess() { kill(); }

void WorkerProcess::signal_end() const {
  if (pid_ == 0) return;
  // One that cannot be signalled ends by itself once its socket is closed.
  if (::kill(pid_, SIGKILL) != 0) ::shutdown(socket_.fd(), SHUT_RDWR);
}

// One that hangs is not waited for: it ends with this process at the latest (PR_SET_PDEATHSIG).
void WorkerProcess::kill() {
  constexpr int kTries = 2000;  // 1 ms each
  for (int tries = 0; pid_ != 0 && tries < kTries; ++tries) {
    signal_end();
    const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = 0;
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
