// From the tree of one run, with every swept key replaced by its value, to a RunConfig.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads network files, each once. Names are relative to the sweep file; one from the command line is also
/// looked for in the current directory. Not thread-safe.
class NetworkFiles {
 public:
  explicit NetworkFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns the content of the file that `name`, a string, names; null at its location, and a problem, if it
  /// cannot be read or parsed. A network without a name is called by the file's.
  JsonNode read(const JsonNode& name, Problems& problems);
  /// If "network" of `tree` is the name of a file, puts the file's content there. Reports a file that cannot
  /// be read or parsed, and leaves null there.
  void load(JsonNode& tree, Problems& problems);

 private:
  std::filesystem::path directory_;
  std::map<std::string, JsonNode> cache_;
};

/// Returns the JSON file in the directory of `missing` whose name is nearest to it; empty if none is near.
std::filesystem::path nearest_file(const std::filesystem::path& missing);

/// What the checks need to know besides the file.
struct ReadContext {
  std::filesystem::path directory;       // of the sweep file
  std::filesystem::path data_directory;  // $SWEEP_DATA: data sets in it are known by name, too; may be empty
  int cuda_device_count = 0;
};

/// Reads every setting of a run, but not its `index`, `name` and `params`. Reports every mistake; the field
/// then keeps its default.
RunConfig read_run_config(const JsonNode& tree, const ReadContext& context, Problems& problems);

/// Sets in a run what was read of a key.
using PutIntoRun = std::function<void(RunConfig& run)>;

/// A top-level key whose value is read, and written to the resolved settings, whatever the other keys are.
struct RunPart {
  const char* key;
  /// Reads the key from a run's tree; its default if it is not given or wrong, which is reported.
  std::function<PutIntoRun(const JsonNode& tree, const ReadContext& context, Problems& problems)> read;
  /// The value as the resolved settings have it; null: they leave it out.
  std::function<nlohmann::ordered_json(const RunConfig& run)> json;
};

/// Every such key, in the order of the resolved settings.
std::span<const RunPart> run_parts();

/// Where each value of `tree` stands.
Origins::Locations origins_of(const JsonNode& tree);

/// Reads "network", an object. Reports every mistake.
NetworkSpec read_network(const JsonNode& node, Problems& problems);

/// Reads the arguments of a layer or optimizer from the members of `object`, except those in `reserved_keys`.
/// Reports every mistake.
Arguments read_arguments(const JsonNode& object, const NamedType& type,
                         std::span<const std::string> reserved_keys, Problems& problems);

/// Returns every setting of the run with its value, defaults included, as a sweep file of that run.
nlohmann::ordered_json resolved_json(const RunConfig& config);

}  // namespace sweep
