// Makes a sweep file independent of its directory, so that the copy in a sweep's directory can be given to
// `sweep` again.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Removes what a sweep adds to the sweep.json that it leaves: "runs", "excluded", "file", "learned" and
/// "provenance". A file without "provenance" is left alone, because there these keys are mistakes. Returns
/// whether it has it.
bool remove_recorded_keys(JsonDocument& root);

/// Makes the paths of "init" and "dataset.path" absolute, in `root`, its axes, conditions and points of its
/// search, and in `overrides`. Puts the content of network files into axes over "network". There each network
/// has a name of its own, by which conditions and points then ask for it: a second one called "mlp" becomes
/// "mlp-2". `directory`: of the sweep file. Network files that cannot be read are left for the expansion to
/// report. Of a program, makes the paths of "cwd" and "inputs" absolute.
void make_self_contained(JsonDocument& root, std::vector<Assignment>& overrides,
                         const std::filesystem::path& directory, NetworkFiles& files);

/// Whether the value at `path` is a path to a file or directory: of "init" or "dataset.path".
bool is_file_path(const KeyPath& path);

/// A short name for each absolute path: its last N components, with the smallest N that makes all names
/// distinct. A single path has its last component.
std::map<std::string, std::string> short_paths(const std::vector<std::string>& paths);

}  // namespace sweep
