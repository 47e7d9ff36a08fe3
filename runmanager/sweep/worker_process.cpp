#include "runmanager/sweep/worker_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "runmanager/sweep/worker.h"

namespace sweep {
namespace {

std::array<int, 2> connected_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw IoError(fmt::format("cannot make a connection to a worker: {}", std::strerror(errno)));
  return ends;
}

ChildStart start_of(const WorkerCommand& command, int socket) {
  ChildStart start{.words = command.words,
                   .group = ChildGroup::kParents,
                   .captures_output = false,
                   .inherited = command.inherited};
  start.words.push_back(std::to_string(socket));
  start.inherited.push_back(socket);
  return start;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerCommand& command) : WorkerProcess(command, connected_sockets()) {}

WorkerProcess::WorkerProcess(const WorkerCommand& command, std::array<int, 2> sockets)
    : socket_(sockets[0]), child_(start_of(command, MessageSocket(sockets[1]).fd())) {
  if (const auto end = child_.end(); end && end->kind == ProcessEnd::Kind::kNotStarted)
    throw IoError(fmt::format("cannot start a worker ({}): {}", command.words[0], std::strerror(end->value)));
}

void WorkerProcess::signal_end() const {
  // One that cannot be signalled ends by itself once its socket is closed.
  if (!child_.kill()) ::shutdown(socket_.fd(), SHUT_RDWR);
}

std::string WorkerProcess::exit_reason() {
  const std::optional<ProcessEnd> end = child_.wait_for_end(std::chrono::seconds(1));
  if (!end) return "closed its connection and had to be killed";
  if (end->kind == ProcessEnd::Kind::kExit)
    return end->value == kWorkerOutOfMemory ? "out of memory"
                                            : fmt::format("ended with exit code {}", end->value);
  // This process does not ask for the reason after killing a worker itself, so it was somebody else.
  const char* const hint = end->value == SIGKILL ? " (by hand, or by the kernel for want of memory)" : "";
  return fmt::format("killed by {}{}", name_of_signal(end->value), hint);
}

}  // namespace sweep
