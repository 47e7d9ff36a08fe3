// Trains runs in worker processes: one per slot, kept for many runs, replaced when it is lost.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/child.h"
#include "proto/worker.pb.h"
#include "runmanager/kinds/shared_dataset.h"
#include "runmanager/sweep/message_socket.h"
#include "runmanager/sweep/run_executor.h"

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

/// Starts the worker of a slot with the slot's first run. A worker that crashed, failed or was killed is
/// replaced with the next run. All workers end with the pool.
class WorkerPool final : public RunExecutor {
 public:
  /// `directory`: the sweep's. `datasets` must outlive the pool; the workers inherit their memory. `timeout`:
  /// see TrainerOptions.
  WorkerPool(WorkerCommand command, std::filesystem::path directory,
             const std::vector<SharedDataset>& datasets, std::size_t slots, double timeout = 0);

  void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) override;
  void set_threads(std::size_t slot, int threads) override;
  void request_stop(std::size_t slot, int signal) override;
  void kill(std::size_t slot) override;
  void wait(std::chrono::milliseconds timeout) override;
  void deliver(std::size_t slot, const ReportEvent& report) override;

 private:
  struct Slot {
    std::unique_ptr<WorkerProcess> worker;  // empty before the first run, and after a lost one
    const ScheduledRun* run = nullptr;      // nullptr: idle
    nlohmann::ordered_json provenance;      // that the worker has been told
    bool is_killed = false;                 // the worker
  };

  proto::ToWorker setup_message() const;
  // The next event, if it has come. A worker that is lost, or says what cannot be read, is gone then.
  static std::optional<RunEvent> next_event(Slot& slot);

  WorkerCommand command_;
  std::filesystem::path directory_;
  const std::vector<SharedDataset>& datasets_;
  const double timeout_;
  std::vector<Slot> slots_;
};

}  // namespace sweep
