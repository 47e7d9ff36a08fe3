// The files that a sweep file names, and how it becomes independent of its directory, so that the copy in a
// sweep's directory can be given to `sweep` again.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runmanager/sweepfile/key_path.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads network files, each once. Not thread-safe.
class NetworkFiles {
 public:
  explicit NetworkFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns the content of the file that `name`, a string, names; nullptr, and a problem, if it cannot be
  /// read or parsed. A network without a name is called by the file's.
  const JsonDocument* read(const JsonView& name, Problems& problems);
  /// If "network" of `tree` is the name of a file, puts the file's content there. Reports a file that cannot
  /// be read or parsed, and leaves null there.
  void load(JsonDocument& tree, Problems& problems);

 private:
  std::filesystem::path directory_;
  std::map<std::filesystem::path, JsonDocument> cache_;
};

/// Returns the JSON file in the directory of `missing` whose name is nearest to it; empty if none is near.
std::filesystem::path nearest_file(const std::filesystem::path& missing);

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
