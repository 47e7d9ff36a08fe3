// Checks of a run's settings against the sizes of its data.
#pragma once

#include <filesystem>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/config/sweep_file.h"

namespace sweep {

/// Reports a batch larger than the training set, layers that do not fit a sample, fewer outputs than classes,
/// and a normalisation for another number of channels; each with the place that the run remembers in
/// `origins`.
void check_run_against_data(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                            Problems& problems);

}  // namespace sweep
