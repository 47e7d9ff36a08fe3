// Runs a person's program in a worker process.
#pragma once

#include "runmanager/kinds/run_kind.h"

namespace sweep {

class CommandWorker final : public KindWorker {
 public:
  /// Follows the program's metrics and output, and ends it when it has to. Everything that it has started is
  /// gone when this returns.
  TrainedRun run(const WorkerTask& task, TrainingObserver& observer, const TrainerOptions& options) override;
};

}  // namespace sweep
