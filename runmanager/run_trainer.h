// Trains one run of a sweep from its first batch to its last file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine.h"
#include "core/network/network.h"
#include "runmanager/progress.h"
#include "runmanager/run_config.h"
#include "runmanager/run_manager.h"

namespace sweep {

/// A run with everything that was loaded and checked for it.
struct PreparedRun {
  const RunConfig* config = nullptr;
  Device device;
  std::optional<std::string> unavailable;  // why the device cannot be used here
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Network> network;
  std::vector<float> weights;  // to start from; empty: drawn from the seed
};

struct TrainerOptions {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine;
  std::function<double()> clock;        // seconds, never going back
  std::function<int()> stop_requested;  // the signal that asks to stop, or 0
  int threads = 0;                      // EngineOptions::threads
};

/// Trains, validates after every epoch, tests at the end, and leaves logs, run.json, log.txt and checkpoint.
/// A run that fails, or is asked to stop, ends as such in `manager`, with the checkpoint of its last finished
/// epoch. Throws only IoError, when files cannot be written: then no other run could go on either.
void train_run(const PreparedRun& run, RunManager& manager, Progress& progress,
               const TrainerOptions& options);

/// The seed that a repeat draws its initial weights from; repeat 0 has the sweep's own.
std::uint64_t weights_seed(std::uint64_t seed, std::uint32_t repeat);

/// What RunManager and TensorBoard are told of a run.
Run describe_run(const RunConfig& config, const Device& device);

}  // namespace sweep
