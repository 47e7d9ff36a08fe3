// A data set that can be learned in a moment, a sweep over it, and what of its results must not change.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// Writes `directory`/data, pictures of 8x8 with one bright quarter out of four, which is the class, and
/// `directory`/quarters.json, 4 runs of 6 epochs over it.
void write_quarters(const std::filesystem::path& directory);

/// Everything of a sweep's runs that does not depend on the clock.
std::string bits_of(const SweepOutcome& outcome);
/// The same of one run; `directory` is the sweep's.
std::string bits_of(const RunRecord& run, const std::filesystem::path& directory);

}  // namespace sweep
