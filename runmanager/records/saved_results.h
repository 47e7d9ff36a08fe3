// The files results.csv and results.json. Not part of the installed interface.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Replaces `base`.csv and `base`.json. `sweep`: its name. `keys`: the first columns for params; others
/// follow in the order of the runs. Throws IoError.
void save_results(const std::filesystem::path& base, const std::vector<RunRecord>& runs,
                  std::string_view sweep, std::vector<std::string> keys, Survives survives);

}  // namespace sweep
