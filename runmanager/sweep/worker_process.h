// A worker process as the sweep handles it: a child process and a socket to it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/base/child.h"
#include "runmanager/sweep/message_socket.h"

namespace sweep {

struct WorkerCommand {
  std::vector<std::string> words;  // the program and its first arguments: {"/proc/self/exe", "worker"}
  std::vector<int> inherited;      // further descriptors that it gets, under the same numbers
};

/// Not thread-safe. The destructor kills the process and waits until it is gone, see Child.
class WorkerProcess {
 public:
  /// Starts `command.words` with the number of its socket as one more argument, /dev/null for input and the
  /// caller's standard error for output. Throws IoError if no process can be started.
  explicit WorkerProcess(const WorkerCommand& command);
  ~WorkerProcess() { signal_end(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  MessageSocket& socket() { return socket_; }

  /// Sends SIGKILL. The socket closes when the process is gone.
  void signal_end() const;

  /// Waits for the end of a process that has closed its socket. Returns "killed by SIGSEGV", "ended with exit
  /// code 3" and the like. A process that does not end within a second is killed.
  std::string exit_reason();

 private:
  WorkerProcess(const WorkerCommand& command, std::array<int, 2> sockets);

  MessageSocket socket_;
  Child child_;
};

}  // namespace sweep
