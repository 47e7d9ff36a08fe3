// Trains one run of a sweep from its first batch to its last file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/training_observer.h"
#include "runmanager/training/run_manager.h"

namespace sweep {

/// A run with everything that was loaded and checked for it.
struct PreparedRun {
  const RunConfig* config = nullptr;
  Device device;
  std::optional<std::string> unavailable;  // why the device cannot be used here
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Network> network;
  Weights weights;                    // to start from; empty: drawn from the seed
  nlohmann::ordered_json provenance;  // of program, machine and data
  int jobs = 1;                       // runs at once on this machine
};

struct TrainerOptions {
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine;
  std::function<double()> clock;        // seconds, never going back
  std::function<int()> stop_requested;  // the signal that asks to stop, or 0
  std::function<int()> threads;         // EngineOptions::threads; asked before each epoch
};

/// Trains, validates after every epoch, tests at the end, and leaves logs, run.json, log.txt and checkpoint.
/// If the directory has a checkpoint of an unfinished run with the same identity, goes on after its last
/// epoch; the end then has the same bits as if nothing had come between. A run that fails, or is asked to
/// stop, ends as such in `manager`, with the checkpoint of its last finished epoch. Returns whether this
/// process can train another run: not if the device failed. Throws only IoError, when files cannot be
/// written: then no other run could go on either.
bool train_run(const PreparedRun& run, RunManager& manager, TrainingObserver& observer,
               const TrainerOptions& options);

/// The seed that a repeat draws its initial weights from; repeat 0 has the sweep's own.
std::uint64_t weights_seed(std::uint64_t seed, std::uint32_t repeat);

/// What RunManager and TensorBoard are told of a run.
Run describe_run(const RunConfig& config, const Device& device, int jobs = 1);

/// Beginning of the reason of a run whose loss was no longer a number: it would be again.
inline constexpr const char* kDiverged = "diverged";

}  // namespace sweep
