// What a sweep shows and writes while its runs are trained, whoever trains them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runmanager/records/disk_sync.h"
#include "runmanager/tensorboard/aggregate.h"
#include "runmanager/terminal/progress.h"
#include "runmanager/training/run_manager.h"

namespace sweep {

/// Where the time of the completed runs went.
struct SweepCost {
  std::size_t runs = 0;
  double seconds = 0;           // from their start to their end, results written
  double training_seconds = 0;  // of these: training, validation and test themselves
  double logging_seconds = 0;   // of these: logs, records and checkpoints
};

/// "8 runs took 6.21 s, of which beside training 1.9 ms per run (0.24%); logs and checkpoints are 0.20%".
std::string cost_text(const SweepCost& cost);

struct SweepBookOptions {
  std::filesystem::path directory;  // of the sweep
  std::string name;
  std::vector<std::string> keys;
  std::function<double()> clock;
  Terminal terminal;
  bool quiet = false;
  double work = 0;  // see Progress
};

/// Keeps records, results.csv and results.json, progress and aggregates of a sweep together. Runs are counted
/// from 0. Not thread-safe. Every call may throw IoError.
class SweepBook {
 public:
  /// `records` has one per run, in order; references to `runs` are kept.
  SweepBook(const SweepBookOptions& options, std::span<const RunConfig> runs, std::vector<RunRecord> records);

  RunManager& manager() { return manager_; }
  Progress& progress() { return progress_; }
  const RunRecord& record(std::size_t run) const { return manager_.records()[run]; }
  /// Of runs that were trained from their start to their end.
  const SweepCost& cost() const { return cost_; }

  void begin_run(std::size_t run);
  /// A finished epoch of a run that is trained elsewhere.
  void end_epoch(std::size_t run, const EpochRecord& epoch);
  /// The manager has its last record.
  void end_run(std::size_t run);

  /// Replaces the files of results, unless that was done a moment ago.
  void save_if_due();
  /// The last word of all files, on the disk.
  void finish();
  /// After a failure: the disk may be full for large files and still have room for small ones.
  void save_what_can_be();

 private:
  void save();
  void count_cost(std::size_t run);

  std::function<double()> clock_;
  RunManager manager_;
  AggregateRuns aggregates_;
  Progress progress_;
  DiskSync disk_;
  double next_save_ = 0;
  SweepCost cost_;
  std::map<std::size_t, double> begun_;  // run: when
};

}  // namespace sweep
