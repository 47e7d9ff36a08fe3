// What a person should know when a sweep's file is no longer what it was at the last start.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// Sentences about runs that are new, that the file no longer has, and `outdated`: finished, but with other
/// settings. `directory` is the sweep's, as the last start has left it. Empty if nothing has changed.
std::vector<std::string> changes_since(const std::filesystem::path& directory,
                                       std::span<const RunConfig> runs,
                                       const std::vector<std::string>& outdated);

}  // namespace sweep
