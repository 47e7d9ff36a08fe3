// From the tree of one run, with every swept key replaced by its value, to a RunConfig.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Where `path` leads: one in a file from `directory`, the file's, one on the command line from the current
/// directory.
inline std::filesystem::path located(const std::filesystem::path& path, const JsonPlace& place,
                                     const std::filesystem::path& directory) {
  return place.has_lines() ? directory / path : path;
}

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

/// Completes every setting of a run and reads it, but not its `index`, `name` and `params`. `tree` is a sweep
/// file without axes and rules, or a recorded configuration. Reports every mistake; the run then keeps its
/// defaults.
RunConfig read_run_config(const JsonView& tree, const ReadContext& context, Problems& problems);

}  // namespace sweep
