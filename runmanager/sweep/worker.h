// A worker: a process that trains runs for a sweep, one after the other, and tells it how they get on.
//
// A run that crashes, hangs or breaks its device ends one worker, and the sweep goes on with another. The
// sweep's own process never touches a GPU.
//
// Messages to a worker: "setup" (once), "train", "threads", "stop"; from it: "begin", "batch", "phase",
// "epoch", then "end" with the run's record, or "failed", or "io_error" when files cannot be written.
#pragma once

#include <functional>
#include <memory>

#include "core/engine/engine.h"

namespace sweep {

/// The world around a worker. Tests replace parts of it.
struct WorkerEnvironment {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine =
      sweep::make_engine;
};

/// Trains what is asked for over the socket `fd` until its other end closes. Ends with the process `parent`
/// (0: whichever started it), however that dies. SIGINT, SIGTERM and SIGUSR1 are left to the parent. Returns
/// an exit code.
int run_worker(int fd, int parent, const WorkerEnvironment& environment = {});

/// The exit code of a worker that could not even say that it was out of memory.
inline constexpr int kWorkerOutOfMemory = 12;  // ENOMEM

/// main() of a worker that was started as PROGRAM worker FD PARENT. Returns an exit code; prints what is
/// wrong with the arguments.
int worker_main(int argc, const char* const* argv, const WorkerEnvironment& environment = {});

}  // namespace sweep
