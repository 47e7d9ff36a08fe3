// What a run is trained with: its engine, as it is before the first batch, and its learning rates.
#pragma once

#include <cstdint>
#include <optional>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/spec/schedule.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

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

}  // namespace sweep
