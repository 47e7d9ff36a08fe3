// The learning rates of a run.
#pragma once

#include <cstdint>

#include "core/spec/schedule.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/recorded_config.h"

namespace sweep {

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
