// What a run does: everything that differs between the training of a network and a person's own program.
// Scheduling, records, displays, comparisons and searches use these two interfaces, and do not know which
// kinds there are; make_run_kind.h does.
//
// A kind works in two processes. RunKind is its part in the process of the sweep, before anything starts.
// KindWorker is its part in a worker process, where a run may crash, hang, or be killed. Between them are the
// messages of proto/worker.proto, which are the same for all kinds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/gpu_pool.h"
#include "runmanager/kinds/shared_dataset.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/run_event.h"
#include "runmanager/training/prepared_run.h"
#include "runmanager/training/run_trainer.h"

namespace sweep {

/// What a run needs of this machine, and where its results come from.
struct RunNeeds {
  Device device;
  std::vector<Device> devices;             // on which it is trained, in ascending order; none if unavailable
  bool takes_gpus = false;                 // of RunKind::gpus(), any that are free
  std::optional<std::string> unavailable;  // why the device cannot be used here
  nlohmann::ordered_json provenance;       // of program, machine and data
  std::size_t dataset = 0;                 // position of its data in RunKind::datasets()
  double work_per_epoch = 1;  // in a unit that is the same for all runs, to estimate the time left
};

/// Loads and checks what the runs of a sweep need before they start. All runs of a sweep are of one kind. Not
/// thread-safe.
class RunKind {
 public:
  RunKind() = default;
  virtual ~RunKind() = default;
  RunKind(const RunKind&) = delete;
  RunKind& operator=(const RunKind&) = delete;

  /// Loads what all runs read. What cannot be loaded matters only if a run needs it: check() throws it.
  virtual void load(const Sweep& sweep) = 0;
  /// Remarks for the person, such as skipped files.
  virtual std::vector<std::string> remarks() const { return {}; }

  /// Decides whether an existing run can be kept.
  virtual RunIdentity identity(const RunConfig& config) = 0;
  IdentityOf identities() {
    return [this](const RunConfig& config) { return identity(config); };
  }

  /// Throws what load() could not load, and ConfigError or ShapeError if a run does not fit it.
  virtual void check(const Sweep& sweep) = 0;
  /// The same for one run that was not in load()'s sweep. Throws ConfigError or ShapeError.
  virtual void check(const RunConfig& config, const std::filesystem::path& sweep_file) = 0;

  /// What the run needs. Throws what goes wrong with anything but its devices, such as weights that do not
  /// fit.
  virtual RunNeeds needs(const RunConfig& config) = 0;

  /// Every file that the run reads: [{"path", "sha256"}]. Throws DataError if one cannot be read.
  virtual nlohmann::ordered_json input_files(const RunConfig& config) = 0;
  /// The GPUs of this machine that its runs get for themselves, see RunNeeds::takes_gpus.
  virtual GpuPool gpus(const Sweep&) const { return {}; }
  /// Whether its runs need worker processes.
  virtual bool needs_workers() const { return false; }
  /// Seconds in which a run must stop when it is asked to.
  virtual double stop_seconds(const RunConfig& config) const = 0;
  /// Seconds in which a worker itself ends a run whose time is over, see TrainerOptions::timeout; 0: it does
  /// not look at the clock, and is killed.
  virtual double timeout_seconds(const RunConfig&) const { return 0; }

  /// Whether a run may get some epochs further than the one after which it pauses.
  virtual bool may_pause_late() const { return false; }
  /// The record that belongs to the state in the directory of a paused run; nothing if there is none, or if
  /// it is damaged. Throws ReadError if it cannot be read.
  virtual std::optional<RunRecord> state_of(const std::filesystem::path& run) const = 0;
  /// The same of the state that a run has which continues another one: that of the other run.
  virtual std::optional<RunRecord> start_of(const std::filesystem::path& run) const = 0;
  /// Copies the state of `parent` to be the start of `run`. After a power cut it is there as a whole or not
  /// at all. Throws IoError.
  virtual void keep_start(const std::filesystem::path& parent, const std::filesystem::path& run) const = 0;

  /// The data sets of the runs, for a KindWorker in this process.
  virtual std::vector<std::shared_ptr<const Dataset>> datasets() { return {}; }
  /// The same as what all workers map into their memory, which this object drops. Throws IoError if there is
  /// not enough memory.
  virtual std::vector<SharedDataset> share_datasets() { return {}; }
};

/// One run as a worker gets it.
struct WorkerTask {
  RunConfig config;
  RunRecord record;  // so far: its settings, device and provenance
  std::size_t dataset = 0;
  int until_epoch = 0;  // see PreparedRun
};

/// Does a run and leaves its files; called in one process, mostly a worker, for one run after the other.
/// Throws IoError if they cannot be written, and what goes wrong before the run begins.
using KindWorker = std::function<TrainedRun(const WorkerTask& task, const ReportEvent& report,
                                            const TrainerOptions& options)>;

}  // namespace sweep
