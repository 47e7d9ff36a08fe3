// Reads what a sweep file says about a person's own program.
#pragma once

#include <filesystem>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Makes the paths of "cwd" and "inputs" absolute. `directory`: of the sweep file, the default of "cwd".
void make_command_self_contained(JsonDocument& root, const std::filesystem::path& directory);

/// The run of a sweep file without axes and rules, or of a recorded configuration. `resolved` has everything
/// that it reads, with empty "params". Reports every mistake.
RunConfig read_command_config(const JsonView& tree, Problems& problems);

}  // namespace sweep
