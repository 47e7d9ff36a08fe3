// Trains one run of a sweep from its first batch to its last file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/run_event.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

struct TrainerOptions {
  std::filesystem::path directory;  // of the sweep; the run has a directory below it
  std::function<std::unique_ptr<Engine>(const Network&, const EngineOptions&)> make_engine;
  std::function<double()> clock;        // seconds, monotonic
  std::function<int()> stop_requested;  // the signal that asks to stop, or 0; asked after each batch
  std::function<int()> threads;         // EngineOptions::threads; asked before each epoch
  /// Seconds after which a run is ended as failed; 0: none. Only programs: another run ends with its process.
  double timeout = 0;
  /// If several processes share the sweep: this process's entry in the run's lock. Once it no longer owns()
  /// the run, training ends without writing another file.
  std::optional<RunOwner> owner = {};
};

/// Trains, validates after every epoch, tests at the end, and leaves events, run.json, log.txt and
/// checkpoint. If the run's directory has a checkpoint of an unfinished run with the same identity, training
/// goes on after its last epoch, and the results have the same bits as without the interruption. A run that
/// fails or is asked to stop keeps the checkpoint of its last finished epoch. Throws
/// IoError when files cannot be written, and what goes wrong before the first epoch, such as std::bad_alloc;
/// run.json then says "running".
TrainedRun train_run(const PreparedRun& run, const ReportEvent& report, const TrainerOptions& options);

}  // namespace sweep
