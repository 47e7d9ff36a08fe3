// The runs that a sweep would train, and what they would take: memory and disk, computed from shapes, and
// time, from a few batches of each shape. How a person's own program would be started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/network/network.h"
#include "runmanager/config/data_check.h"
#include "runmanager/config/run_config.h"
#include "runmanager/kinds/gpu_pool.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/table.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// Peak memory of a run on the CPU, in bytes.
struct MemoryEstimate {
  std::uint64_t process = 0;  // the worker's program and libraries
  std::uint64_t engine = 0;   // parameters, gradients, optimizer state, activations: counted by the engine
  std::uint64_t loader = 0;   // the order of the samples, and batches that workers make ahead
  std::uint64_t results = 0;  // what is copied for checkpoints, histograms and predictions
  std::uint64_t data = 0;     // samples and targets; shared by all runs

  std::uint64_t own() const { return process + engine + loader + results; }
  std::uint64_t total() const { return own() + data; }
};

/// What a run leaves on the disk, in bytes.
struct DiskEstimate {
  std::uint64_t once = 0;       // checkpoints, pictures, graph, predictions
  std::uint64_t per_epoch = 0;  // events and records

  std::uint64_t of_epochs(std::size_t epochs) const { return once + epochs * per_epoch; }
};

/// What a pilot has measured of runs of one shape, in seconds.
struct PilotTimes {
  double setup = 0;  // once: making the engine, copying data to its device
  double epoch = 0;  // training, validation, and the logs and the checkpoint of an epoch
  double end = 0;    // once: test set, predictions, records
  double of_epochs(std::size_t epochs) const { return setup + epoch * static_cast<double>(epochs) + end; }
};

/// Trains and evaluates a few batches of the run with `threads` CPU threads, >= 1, and computes from these
/// what the whole takes. Writes nothing. The run needs `config`, `device`, `data` and `network`. Throws
/// DeviceError, and what the engine throws.
PilotTimes run_pilot(const PreparedRun& run, int threads);

/// What runs of one shape have in common: they differ in numbers such as lr and seed only.
struct RunCost {
  std::size_t data_set = 0;              // its number: shapes with the same one share their data
  std::size_t train_samples = 0;         // per epoch
  std::size_t steps_per_epoch = 0;       // optimizer steps
  std::size_t parameter_count = 0;       // floats
  double training_flops = 0;             // of one epoch
  std::optional<MemoryEstimate> memory;  // nothing: not estimated, as on a GPU
  DiskEstimate disk;
  std::optional<std::string> unavailable;  // why its devices cannot train together
  std::optional<PilotTimes> times;         // once it was measured
};

/// One run as it would be started.
struct PlannedRun {
  const RunConfig* config = nullptr;
  std::string device{};                       // where it would train: "cpu", "cuda:1"
  std::shared_ptr<const std::string> skip{};  // why it would be skipped instead; null: it would not
  std::string_view fate = "new";              // see RunFate, or "replaced", "pruned"
  std::string note{};                         // anything else the user should know
  std::size_t trained_epochs = 0;             // that an earlier start has left, and that are kept
  std::shared_ptr<RunCost> cost{};            // shared by runs of one shape; null: of a program
  std::vector<std::string> command{};         // of a program

  /// Whether any part of it would be trained.
  bool trains() const {
    return skip == nullptr && fate != "kept" && fate != "pruned" && fate != "in the way";
  }
  std::size_t epochs_left() const;
  /// Bytes that the run will have on the disk when it has finished; 0 for one that is not trained.
  std::uint64_t disk_bytes() const;
  /// Seconds that it will take; nothing without a pilot.
  std::optional<double> seconds() const;
};

struct SweepPlan {
  const Sweep* sweep = nullptr;                 // outlives the plan
  std::filesystem::path directory = {};         // of the sweep, which is or will be there
  std::vector<PlannedRun> runs = {};            // as Sweep::runs
  GpuPool gpus = {};                            // of this machine, for the runs of a program
  int jobs = 1;                                 // runs at once, >= 1
  int threads = 1;                              // CPU threads of each, >= 1
  std::optional<std::uint64_t> disk_free = {};  // bytes, where the directory is or will be

  /// Peak memory of the runs that are at once in memory, the largest ones, and of all their data sets, each
  /// once; nothing if one of them is not known or nothing is trained.
  std::optional<std::uint64_t> memory_bytes() const;
  std::uint64_t disk_bytes() const;
  /// From the first run's start to the last one's end; nothing without a pilot.
  std::optional<double> seconds() const;
};

/// Adds the runs of the plan's sweep, which train networks; those of one shape are computed once. `sizes_of`
/// is called once per data set. `unavailable` says why a device cannot be used, or nothing; it is called once
/// for each. Both may throw.
void plan_runs(SweepPlan& plan, const std::function<DataSizes(const DatasetSpec&)>& sizes_of,
               const std::function<std::optional<std::string>(const Device&)>& unavailable);

/// Writes the plan as JSON, indented by two, with a newline at the end.
void write_plan_json(const SweepPlan& plan, std::ostream& out);

/// A row per run with what it takes; in CSV numbers are plain.
TextTable plan_table(const SweepPlan& plan, TableFormat format);

/// The table as text, then what is left out and why, what a search makes of the runs, whose costs are those
/// of training all to their ends, and the totals. Lines have at most `width` columns; the least important
/// ones of the table are left out for that, and names are cut. 0: any length. A program has a few lines per
/// run, with its command, of any length. Ends with a newline.
std::string plan_text(const SweepPlan& plan, int width = 0, bool unicode = true);

/// "12.5 MiB", "34 B".
std::string bytes_text(std::uint64_t bytes);

/// Keeps the prediction for the plan's directory in the user's cache. Does nothing for a plan without times,
/// without a cache, or if the cache cannot be written.
void save_prediction(const SweepPlan& plan);

/// Compares the prediction for `directory`, if there is one, with the `seconds` that the sweep took with
/// `jobs` runs at once, and forgets it: "Predicted 41 s, took 43 s (+4.9 %)". Empty if there is none, or if
/// the sweep did something else: other runs, or not all of them to their ends.
std::string compare_with_prediction(const std::filesystem::path& directory, std::span<const RunRecord> runs,
                                    int jobs, double seconds);

}  // namespace sweep
