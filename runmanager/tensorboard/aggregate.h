// A log directory next to a sweep's with one run per combination: the mean over its repeats, and the
// deviation.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/results.h"

namespace sweep {

/// "runs/fashion.mean" for "runs/fashion". Not inside it: TensorBoard ticks no run if there are more than 40,
/// and also counts these.
std::filesystem::path mean_directory(const std::filesystem::path& sweep_directory);

/// Writes <sweep>.mean/<combination> for every combination of a sweep with repeats. To TensorBoard they are
/// ordinary runs with the tags of the repeats and with "Std/<tag>", and rows of the hparams table. Not
/// thread-safe.
class AggregateRuns {
 public:
  /// `directory`: of the sweep. Runs without "repeat" among their params are ignored.
  AggregateRuns(const std::filesystem::path& directory, std::span<const RunConfig> runs);

  /// Rewrites the aggregate of the run's combination. Removes it while one of its runs has not ended, or if
  /// fewer than two are completed. `records`: of all runs, in the sweep's order. Throws IoError.
  void update(std::size_t run, std::span<const RunRecord> records) const;
  /// Does the same for every combination, and removes what combinations of earlier starts have left.
  void update_all(std::span<const RunRecord> records) const;

  /// The names of the runs in mean_directory() that are there.
  std::vector<std::string> written() const;

 private:
  struct Combination {
    RepeatGroup group;
    LogOptions log;
    Params not_swept;
  };
  void write(const Combination& combination, std::span<const RunRecord> records) const;
  void remove_old() const;

  std::filesystem::path directory_;  // of the aggregates
  std::vector<Combination> combinations_;
};

}  // namespace sweep
