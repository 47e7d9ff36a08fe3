// What happens to a run while it is trained. The events are declared here and passed on unchanged: by the
// trainer, or by what follows a program, to the worker's socket, the scheduler, the records and the display.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The run begins. Its extent, known before its first batch.
struct RunPlan {
  std::string name;
  int epochs = 0;
  std::size_t batches = 0;                        // per epoch
  std::size_t samples = 0;                        // per epoch
  int trained_epochs = 0;                         // by earlier starts
  std::vector<EpochRecord> finished_epochs = {};  // the records of those, and of epoch 0 if it was measured
  bool has_classes = true;                        // whether there is an accuracy
};

/// Training batches of an epoch, with their sums. None of them: the epoch begins.
struct TrainedBatches {
  int epoch = 1;  // from 1
  std::size_t count = 0;
  Totals totals = {};
};

/// The run is busy with something other than training: "validation", "test", "predictions". Comes repeatedly
/// while that lasts.
struct RunPhase {
  std::string name;
};

/// The phase of a run that waits until its files are written.
inline constexpr std::string_view kWritesFiles = "writing files";

/// What made a run fail, as far as it decides what happens next.
enum class RunFailure {
  kNone,      // the run did not fail
  kError,     // an error that another attempt may not meet
  kDiverged,  // the loss became NaN or infinite; another attempt would train the same bits
  kDevice,    // the device failed; this process cannot use it any more
  kLost,      // the process that trained it was lost
  kTakenOver  // none: another process has taken over the run, and this record does not count
};

/// The run has ended: completed, failed or interrupted.
struct TrainedRun {
  /// Final. A run that has paused is interrupted: it goes on when it is trained again with a later
  /// PreparedRun::until_epoch.
  RunRecord record;
  RunFailure failure = RunFailure::kNone;
  bool changes_epochs = false;  // the record's are not those that came as events
};

/// The run ended without a final record, because its process did or because it could not begin. Nothing
/// writes to its files any more.
struct LostRun {
  std::string reason;
};

/// The run ended because a file could not be written.
struct UnwritableRun {
  std::string error;
  bool only_its_directory = false;  // what is in its way, or was removed, is there
};

/// In the order in which they come, and one of the last three ends the run. An EpochRecord says that the
/// epoch is in the run's files and survives the end of the process; epoch 0 does so with epoch 1. It comes
/// when the checkpoint is written, which may be after the next epoch has begun.
using RunEvent =
    std::variant<RunPlan, TrainedBatches, RunPhase, EpochRecord, TrainedRun, LostRun, UnwritableRun>;

/// Called by the thread that trains, which waits for every call: it must return quickly.
using ReportEvent = std::function<void(const RunEvent&)>;

}  // namespace sweep
