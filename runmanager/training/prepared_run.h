// One run of a sweep with everything that was loaded and checked for it, and what it is trained with.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "core/network/schedule.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_builder.h"

namespace sweep {

struct PreparedRun {
  const RunConfig* config = nullptr;  // owned by the caller, like everything it points to
  Device device;
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Network> network;
  Weights weights;                    // to start from; empty: drawn from the seed
  nlohmann::ordered_json provenance;  // of program, machine and data
  int jobs = 1;                       // runs at once on this machine
  int until_epoch = 0;                // it pauses after this epoch, from 1; 0: it does not
};

/// Everything except `threads`, which the trainer chooses, and `transform`, which is the data's.
EngineOptions engine_options(const RunConfig& config, const Device& device);
/// With `transform`.
EngineOptions engine_options(const PreparedRun& run);

/// How the training samples are loaded.
LoaderOptions loader_options(const RunConfig& config);

/// Makes the engine do its one-time work now, so that it does not count as part of the first epoch. Returns
/// where it has put the samples, and sets `loader`, which gives the training samples, to that.
std::optional<Placement> prepare_engine(Engine& engine, const PreparedRun& run, DataLoader& loader);

/// Sets the weights that the run begins with: those it was given, or random ones by its seed.
void set_initial_weights(Engine& engine, const PreparedRun& run);

/// Immutable, thread-safe.
class RunSchedule {
 public:
  /// `config` must outlive the object. `batches`: of an epoch.
  RunSchedule(const RunConfig& config, std::int64_t batches);

  /// What a batch of an epoch is trained with, both from 0. Epochs that the run continues have the values of
  /// the runs that have trained them.
  StepValues at(int epoch, std::int64_t batch) const;
  /// The learning rate at the beginning of an epoch.
  double operator()(int epoch) const { return at(epoch, 0).learning_rate; }

 private:
  const RunConfig& config_;
  const ScheduleOptions options_;
  const std::int64_t batches_;
  const Lineage lineage_;
};

/// The run as its events and its record describe it.
Run describe_run(const RunConfig& config, const std::string& device, int jobs = 1);

}  // namespace sweep
