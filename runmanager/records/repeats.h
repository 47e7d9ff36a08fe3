// Runs that differ only in their repeat: which belong together, and how far their values spread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/config/params.h"
#include "runmanager/records/results.h"

namespace sweep {

/// What rows of results.csv over several repeats have in place of a run's status.
inline constexpr std::string_view kMeanStatus = "mean", kDeviationStatus = "std";

/// A combination of the other parameters.
struct RepeatGroup {
  Params params;                  // without the repeat
  std::string name;               // of the combination among the others, as run_names() makes it
  std::vector<std::size_t> runs;  // positions
};

/// The combinations of `runs`, in their order; runs without "repeat" are in none.
std::vector<RepeatGroup> repeat_groups(std::span<const Params> runs);

/// What the completed runs of a combination have in common.
struct CompletedRepeats {
  Params params;  // of the RepeatGroup, and its name
  std::string name;
  std::vector<const RunRecord*> runs;  // two or more, each with an epoch or more
};

/// The completed runs of `group`; nullopt if there are fewer than two. `runs`: all those that the positions
/// count; has to outlive what is returned.
std::optional<CompletedRepeats> completed_repeats(const RepeatGroup& group, std::span<const RunRecord> runs);
/// The same of every combination of `runs` that has two.
std::vector<CompletedRepeats> completed_repeats(std::span<const RunRecord> runs);

/// The mean, and the deviation of the sample: divided by the number of values less one.
struct Spread {
  double mean = 0, deviation = 0;
};

/// The spread of two values or more. NaN among them makes both NaN.
Spread spread_of(std::span<const double> values);

/// The spreads over the repeats of every metric that all of them have in an epoch.
struct EpochSpreads {
  std::size_t epoch = 0;
  std::map<const Metric*, Spread> values = {};
};

/// Those of the epochs that all of the repeats have, from 0 or 1 on. Metrics of whole runs, such as
/// test_loss, belong to the last of these.
std::vector<EpochSpreads> spreads_of(const CompletedRepeats& repeats);

}  // namespace sweep
