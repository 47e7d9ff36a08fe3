// A worker as its sweep sees it: a child process with a socket to it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runmanager/sweep/messages.h"

namespace sweep {

struct WorkerCommand {
  std::vector<std::string> words;  // the program and its first arguments: {"/proc/self/exe", "worker"}
  std::vector<int> inherited;      // descriptors that it gets under the same numbers, beside its socket
};

/// Not thread-safe. The process is killed with the object.
class WorkerProcess {
 public:
  /// Starts `command.words` with two more arguments, the number of its socket and the caller's process id.
  /// The child has the signal handling of a fresh process, and standard error for its output. Throws IoError
  /// if no process can be started.
  static WorkerProcess start(const WorkerCommand& command);

  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  WorkerProcess(const WorkerProcess&) = delete;

  MessageSocket& socket() { return socket_; }
  pid_t pid() const { return pid_; }

  /// SIGKILL, and waits for its end.
  void kill();

  /// Waits for the end of a process that has closed its socket, and says what it was: "killed by SIGSEGV",
  /// "ended with exit code 3". One that does not end is killed after a second.
  std::string how_it_ended();

 private:
  WorkerProcess(pid_t pid, MessageSocket socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;  // 0 once it has ended
  MessageSocket socket_;
};

}  // namespace sweep
