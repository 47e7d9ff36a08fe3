// Extra runs in TensorBoard with the mean, minimum and maximum over the repeats of a combination.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The mean, minimum or maximum of one epoch over the repeats. Values that were not measured are missing.
struct AggregatePoint {
  int epoch = 0;
  double loss = 0;
  std::optional<double> accuracy = {};
  std::optional<double> validation_loss = {};
  std::optional<double> validation_accuracy = {};
  Measures measures = {}, validation_measures = {};
};

struct Aggregate {
  std::vector<AggregatePoint> mean, min, max;  // one point per epoch that all of the runs have
};

/// Aggregates the completed runs among `repeats`; empty if there are fewer than two. NaN in one run makes all
/// three NaN.
std::optional<Aggregate> aggregate_of(std::span<const RunRecord* const> repeats);

/// Writes <combination>,aggregate=mean, =min and =max beside the runs of a sweep with repeats. To TensorBoard
/// they are ordinary runs with the same tags, without hyperparameters. They are not in the results. Not
/// thread-safe.
class AggregateRuns {
 public:
  /// `directory`: of the sweep. Runs without "repeat" among their params are ignored.
  AggregateRuns(std::filesystem::path directory, std::span<const RunConfig> runs);

  /// Rewrites the aggregates of the run's combination. Removes them while one of its runs has not ended, or
  /// if fewer than two are completed. `records`: of all runs, in the sweep's order. Throws IoError.
  void update(std::size_t run, std::span<const RunRecord> records) const;
  /// Does the same for every combination.
  void update_all(std::span<const RunRecord> records) const;

  /// The names of all directories that update() may write.
  std::vector<std::string> names() const;

 private:
  struct Combination {
    std::vector<std::size_t> runs;   // positions in the sweep
    std::vector<std::string> names;  // of mean, min and max
  };
  void write(const Combination& combination, std::span<const RunRecord> records) const;

  std::filesystem::path directory_;
  std::vector<Combination> combinations_;
};

}  // namespace sweep
