// Who wants to know how the training of one run gets on: the terminal, or the process that asked for it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

/// What a run is going to do.
struct RunPlan {
  std::size_t number = 1;  // in the sweep, from 1
  std::string name;
  int epochs = 0;
  std::size_t batches = 0;  // per epoch
  std::size_t samples = 0;  // per epoch
  int first_epoch = 0;      // those before it were trained by an earlier start
};

/// Told of a run's training by the thread that trains, in this order, but that an epoch may end only when the
/// next one has begun. Calls should take no time.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  virtual void begin_run(const RunPlan& plan) = 0;
  virtual void begin_epoch(int epoch) = 0;
  /// After each batch, or several, with their sums.
  virtual void batch(const Totals& totals, std::size_t count = 1) = 0;
  /// What happens beside training: "validation", "test". Called now and then while it does.
  virtual void phase(std::string_view what) = 0;
  /// The epoch is in the run's files: no later end of the program can lose it.
  virtual void end_epoch(const EpochRecord& epoch) = 0;
};

}  // namespace sweep
