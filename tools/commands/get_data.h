// Downloads known data sets, for `sweep data get` and for trainings with --yes.
#pragma once

#include <iosfwd>
#include <string>

#include "core/data/dataset.h"
#include "runmanager/sweepfile/sweep_file.h"

namespace sweep {

/// Downloads the known data set `name` into the user's cache, unless it is there, and says so on `out`.
/// Returns the exit code: 0, or 128 + signal. Throws ConfigError for another name, and what fetch_dataset()
/// throws.
int get_dataset(const std::string& name, std::ostream& out);

/// Downloads the known data sets of `sweep` that none of dataset_places() has, and says so on standard
/// error. Returns and throws as get_dataset().
int get_missing_datasets(const Sweep& sweep);

/// "[1, 28, 28] of uint8".
std::string sample_text(const Dataset& dataset);

}  // namespace sweep
