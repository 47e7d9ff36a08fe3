// Trains one run of a sweep from its first batch to its last file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_lock.h"
#include "runmanager/records/training_observer.h"
#include "runmanager/tensorboard/run_log.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// The phase of a run that waits until its files are written.
inline constexpr std::string_view kWritesFiles = "writing files";

struct TrainerOptions {
  std::filesystem::path directory;  // of the sweep; the run has a directory below it
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine;
  std::function<double()> clock;          // seconds, monotonic
  std::function<int()> stop_requested;    // the signal that asks to stop, or 0; asked after each batch
  std::function<int()> threads;           // EngineOptions::threads; asked before each epoch
  ImageGridCache* image_grids = nullptr;  // shared by the runs of this process; not null
  /// If several processes share the sweep: this process's entry in the run's lock. Once it no longer owns()
  /// the run, training ends without writing another file.
  std::optional<RunOwner> owner = {};
};

/// What made a run fail, as far as it decides what happens next.
enum class RunFailure {
  kNone,      // the run did not fail
  kError,     // an error that another attempt may not meet
  kDiverged,  // the loss became NaN or infinite; another attempt would train the same bits
  kDevice,    // the device failed; this process cannot use it any more
  kLost,      // the process that trained it was lost
  kTakenOver  // none: another process has taken over the run, and the record has only what this one did
};

struct TrainedRun {
  /// Final: completed, failed or interrupted. A run that has paused is also interrupted: it goes on when it
  /// is trained again with a later PreparedRun::until_epoch.
  RunRecord record;
  RunFailure failure = RunFailure::kNone;
  bool lacks_epochs = false;  // the record: they are those that the observer was told of
};

/// Trains, validates after every epoch, tests at the end, and leaves events, run.json, log.txt and
/// checkpoint. If the run's directory has a checkpoint of an unfinished run with the same identity, training
/// goes on after its last epoch, and the results have the same bits as without the interruption. A run that
/// fails or is asked to stop keeps the checkpoint of its last finished epoch. Throws
/// IoError when files cannot be written, and what goes wrong before the first epoch, such as std::bad_alloc;
/// run.json then says "running".
TrainedRun train_run(const PreparedRun& run, TrainingObserver& observer, const TrainerOptions& options);

}  // namespace sweep
