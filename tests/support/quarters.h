// A data set that is learned within a second, a sweep over it, and the reproducible part of its results.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// Writes `directory`/data, images of 8x8 pixels whose class is the bright one of their four quarters, and
/// `directory`/quarters.json, a sweep of 4 runs of 6 epochs over them.
void write_quarters(const std::filesystem::path& directory);

/// Everything in a sweep's results that does not depend on the clock: statuses, losses, metrics, weights.
std::string bits_of(const SweepOutcome& outcome);
/// The same for one run. `directory`: of the sweep.
std::string bits_of(const RunRecord& run, const std::filesystem::path& directory);

}  // namespace sweep
