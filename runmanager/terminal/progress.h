// What a sweep tells while it trains.
#pragma once

#include <cstddef>
#include <string_view>

#include "runmanager/records/results.h"
#include "runmanager/records/training_observer.h"

namespace sweep {

/// Shows the progress of a sweep. Showing never throws. Not thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;

  /// The observer that shows the training of run `number`, from 1. Valid until end_run() of that number.
  virtual TrainingObserver& run(std::size_t number) = 0;
  /// Shows how run `number` ended. Also for a run that never began, because it was skipped or failed early.
  virtual void end_run(std::size_t number, const RunRecord& run) = 0;
  /// Counts `count` runs as finished that an earlier start has trained.
  virtual void keep_runs(std::size_t count) = 0;
  /// Something that is said even if nothing else is.
  virtual void message(std::string_view line) = 0;
};

}  // namespace sweep
