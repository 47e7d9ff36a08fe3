// A worker process as the sweep handles it: a child process and a socket to it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runmanager/sweep/message_socket.h"

namespace sweep {

struct WorkerCommand {
  std::vector<std::string> words;  // the program and its first arguments: {"/proc/self/exe", "worker"}
  std::vector<int> inherited;      // further descriptors that it gets, under the same numbers
};

/// Not thread-safe. The destructor kills the process.
class WorkerProcess {
 public:
  /// Starts `command.words` with two more arguments: the number of its socket and the caller's process id.
  /// The child has default signal handling, an empty signal mask, /dev/null for input and the caller's
  /// standard error for output. Throws IoError if no process can be started.
  static WorkerProcess start(const WorkerCommand& command);

  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  WorkerProcess(const WorkerProcess&) = delete;

  MessageSocket& socket() { return socket_; }
  pid_t pid() const { return pid_; }

  /// Sends SIGKILL. The socket closes when the process is gone.
  void signal_end() const;
  /// Sends SIGKILL and waits until the process is gone, up to two seconds: one that waits for a disk ends
  /// when that answers.
  void kill();

  /// Waits for the end of a process that has closed its socket. Returns "killed by SIGSEGV", "ended with exit
  /// code 3" and the like. A process that does not end within a second is killed.
  std::string exit_reason();

 private:
  WorkerProcess(pid_t pid, MessageSocket socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;  // 0 once it has ended
  MessageSocket socket_;
};

}  // namespace sweep
