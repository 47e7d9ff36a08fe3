// What has changed in a sweep since its last start, in words.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/earlier_starts/existing_runs.h"

namespace sweep {

/// Sentences about runs that are new, renamed, continued, replaced, or no longer in the file. `directory` is
/// the sweep's, as the last start has left it; `existing` has an entry for each of `runs`. Empty if nothing
/// has changed.
std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       std::span<const ExistingRun> existing);

/// The names of the last start's runs; nothing if there was none.
std::optional<std::vector<std::string>> runs_of_sweep_file(const std::filesystem::path& directory);

/// For a search that has chosen all of its trials, `runs`: which of `earlier` are none of them; "" if all
/// are.
std::string trials_left_out_text(const std::vector<std::string>& earlier, std::span<const RunConfig> runs);

/// The first three of `names`, and how many more there are: "a; b; c and 4 more".
std::string first_names(const std::vector<std::string>& names);

}  // namespace sweep
