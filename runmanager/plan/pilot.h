// How long runs will take, from a few batches of each shape.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/engine/engine.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// What a pilot has measured of runs of one shape, in seconds.
struct PilotTimes {
  double setup = 0;  // once: making the engine, copying data to its device
  double epoch = 0;  // training, validation, and the logs and the checkpoint of an epoch
  double end = 0;    // once: test set, predictions, records
  double of_epochs(std::size_t epochs) const { return setup + epoch * static_cast<double>(epochs) + end; }
};

struct PilotOptions {
  int threads = 1;       // CPU threads, >= 1
  double seconds = 0.3;  // to measure training for; at least three batches are trained all the same
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine =
      sweep::make_engine;
  std::function<double()> clock;  // seconds, monotonic
};

/// Trains and evaluates a few batches of the run, and computes from these what the whole takes. Writes
/// nothing. The run needs `config`, `device`, `data` and `network`. Throws DeviceError, and what the engine
/// throws.
PilotTimes run_pilot(const PreparedRun& run, const PilotOptions& options);

}  // namespace sweep
