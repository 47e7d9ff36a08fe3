// Runs for TensorBoard that show the mean, the least and the greatest of a combination's repeats.
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

/// Mean, minimum or maximum of one epoch over repeats; what was not measured is missing.
struct AggregatePoint {
  int epoch = 0;
  double loss = 0;
  double accuracy = 0;
  std::optional<double> validation_loss = {};
  std::optional<double> validation_accuracy = {};
};

struct Aggregate {
  std::vector<AggregatePoint> mean, min, max;  // one point per epoch that all of the runs have
};

/// Of the completed runs among `repeats`; nothing if they are fewer than two. NaN in one run is NaN in all
/// three.
std::optional<Aggregate> aggregate_of(std::span<const RunRecord* const> repeats);

/// Writes <combination>,aggregate=mean and so on beside the runs of a sweep with repeats: ordinary runs for
/// TensorBoard with tags as the runs have them, without hyperparameters, and not in the results. Not
/// thread-safe.
class AggregateRuns {
 public:
  /// `directory` is the sweep's. Runs that have no "repeat" among their params are left out.
  AggregateRuns(std::filesystem::path directory, std::span<const RunConfig> runs);

  /// Writes the aggregates of the run's combination anew, or removes them while one of its runs is still to
  /// be done or fewer than two are completed. `records` are of all runs, in the sweep's order. Throws
  /// IoError.
  void update(std::size_t run, std::span<const RunRecord> records) const;
  /// The same for every combination.
  void update_all(std::span<const RunRecord> records) const;

  /// Names of all directories that update() may write.
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
