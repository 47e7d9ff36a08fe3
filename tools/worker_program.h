// How this program starts its workers: itself, with "worker" as the first word.
#pragma once

#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// The first word of a worker's command line. Not one of the commands, since no user types it.
inline constexpr const char* kWorkerWord = "worker";

/// The environment of a sweep whose runs are trained in workers. /proc/self/exe starts the same program even
/// if its file was replaced since.
inline SweepEnvironment environment_with_workers() {
  SweepEnvironment environment;
  environment.worker_command = {"/proc/self/exe", kWorkerWord};
  return environment;
}

}  // namespace sweep
