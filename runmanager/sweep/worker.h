// A worker: a process that trains runs for a sweep, one after the other, and reports their progress over a
// socket. proto/worker.proto has the messages.
//
// A run that crashes, hangs or breaks its device costs one worker, and the sweep goes on with another. The
// sweep's own process never touches a GPU.
#pragma once

#include <functional>
#include <memory>

#include "core/engine/engine.h"

namespace sweep {

/// What a worker uses from outside. Tests replace it.
struct WorkerEnvironment {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine =
      sweep::make_engine;
};

/// The exit code of a worker that ran out of memory where it could not report that.
inline constexpr int kWorkerOutOfMemory = 12;  // ENOMEM

/// main() of a worker, started as PROGRAM worker FD: trains the runs that are requested over the socket FD,
/// until its other end closes. Ignores kStopSignals, which the parent handles. Prints what is wrong with the
/// arguments. Returns an exit code.
int worker_main(int argc, const char* const* argv, const WorkerEnvironment& environment = {});

}  // namespace sweep
