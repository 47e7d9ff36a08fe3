// The interface through which the training of a run reports its progress: to the terminal, or to the process
// that asked for the run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The extent of a run, known before its first batch.
struct RunPlan {
  std::size_t number = 1;  // in the sweep, from 1
  std::string name;
  int epochs = 0;
  std::size_t batches = 0;                        // per epoch
  std::size_t samples = 0;                        // per epoch
  int trained_epochs = 0;                         // by earlier starts
  std::vector<EpochRecord> finished_epochs = {};  // the records of those, and of epoch 0 if it was measured
  bool has_classes = true;                        // whether there is an accuracy
};

/// Called by the thread that trains, in the order of the methods. One exception: an epoch ends when its
/// checkpoint is written, which may be after the next epoch has begun. Training waits for every call, so
/// implementations must return quickly.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  virtual void begin_run(const RunPlan& plan) = 0;
  /// `epoch`: from 1.
  virtual void begin_epoch(int epoch) = 0;
  /// After one training batch, or after `count` of them with their sums.
  virtual void batch(const Totals& totals, std::size_t count = 1) = 0;
  /// The run is busy with something other than training: "validation", "test", "predictions". Called
  /// repeatedly while that lasts.
  virtual void phase(std::string_view name) = 0;
  /// The epoch is in the run's files and survives the end of the process; epoch 0 does so with epoch 1.
  virtual void end_epoch(const EpochRecord& epoch) = 0;
};

}  // namespace sweep
