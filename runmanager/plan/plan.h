// The runs that a sweep would train and their cost, without training them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/device.h"
#include "runmanager/config/data_check.h"
#include "runmanager/config/run_config.h"
#include "runmanager/plan/pilot.h"
#include "runmanager/plan/run_cost.h"
#include "runmanager/terminal/table.h"

namespace sweep {

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
  std::string device;                         // where it would train: "cpu", "cuda:1"
  std::shared_ptr<const std::string> skip{};  // why it would be skipped instead; null: it would not
  std::string_view fate = "new";              // see RunFate, or "replaced", "pruned"
  std::string note{};                         // anything else the user should know
  std::size_t trained_epochs = 0;             // that an earlier start has left, and that are kept
  std::shared_ptr<RunCost> cost{};            // shared by runs of one shape

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

/// What the plan asks of its surroundings. Each function may throw.
struct PlanEnvironment {
  std::function<DataCost(const DatasetSpec&)> data;  // called once per data set
  /// Why a device cannot be used, or nothing. Called once for each.
  std::function<std::optional<std::string>(const Device&)> unavailable;
  int jobs = 1;                            // runs at once, >= 1
  int threads = 1;                         // CPU threads of each, >= 1
  std::optional<std::uint64_t> disk_free;  // bytes, where the sweep's directory is or will be
};

struct SweepPlan {
  const Sweep* sweep = nullptr;
  std::vector<PlannedRun> runs;  // as Sweep::runs
  int jobs = 1, threads = 1;
  std::optional<std::uint64_t> disk_free;

  /// Peak memory of the runs that are at once in memory, the largest ones, and of all their data sets, each
  /// once; nothing if one of them is not known or nothing is trained.
  std::optional<std::uint64_t> memory_bytes() const;
  std::uint64_t disk_bytes() const;
  /// From the first run's start to the last one's end; nothing without a pilot.
  std::optional<double> seconds() const;
};

/// Runs at once for --jobs `jobs` (0: as many as there are cores) in a sweep of `runs` runs; at least 1.
int runs_at_once(int jobs, std::size_t runs);

/// Returns the plan of `sweep`, which has to outlive it. Runs of one shape are computed once.
SweepPlan make_plan(const Sweep& sweep, const PlanEnvironment& environment);

/// Writes the plan as JSON, indented by two, with a newline at the end.
void write_plan_json(const SweepPlan& plan, std::ostream& out);

/// A row per run with what it takes; in CSV numbers are plain.
TextTable plan_table(const SweepPlan& plan, TableFormat format);

/// The table as text, then what is left out and why, then the totals. Lines have at most `width`
/// columns; the least important ones of the table are left out for that, and names are cut. 0: any length.
/// Ends with a newline.
std::string plan_text(const SweepPlan& plan, int width = 0, bool unicode = true);

/// "12.5 MiB", "34 B".
std::string bytes_text(std::uint64_t bytes);

}  // namespace sweep
