// Describes how a sweep has changed since its last start.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// One sentence each about new runs, about runs that the file no longer has, and about `outdated` runs, which
/// had finished with other settings. `directory`: of the sweep, as the last start has left it. Empty if
/// nothing has changed.
std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       const std::vector<std::string>& outdated);

}  // namespace sweep
