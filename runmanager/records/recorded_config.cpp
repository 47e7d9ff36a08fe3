#include "runmanager/records/recorded_config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "runmanager/sweepfile/command_reader.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Gives every value and key below `node` its own path, so that a message can name it. There are no lines,
// because there is no text.
void set_locations(JsonNode& node, const std::shared_ptr<const std::string>& source,
                   const std::string& path) {
  const auto location_at = [&source](std::string value_path) {
    return std::make_shared<const JsonLocation>(
        JsonLocation{.source = source, .line = 0, .column = 0, .offset = 0, .path = std::move(value_path)});
  };
  const std::string prefix = path.empty() ? "" : path + ".";
  node.location = location_at(path);
  for (std::size_t i = 0; i < node.elements.size(); ++i)
    set_locations(node.elements[i], source, prefix + std::to_string(i));
  for (JsonMember& member : node.members) {
    member.key_location = location_at(prefix + member.key);
    set_locations(member.value, source, prefix + member.key);
  }
}

// The tree that parse_json() would return for the text of `settings`.
JsonNode settings_tree(const Json& settings, const std::string& source) {
  JsonNode tree = from_json(settings, nullptr);
  set_locations(tree, std::make_shared<const std::string>(source), "");
  return tree;
}

}  // namespace

RunConfig recorded_config(const RunRecord& record) {
  try {
    Json settings = record.config;
    // The only setting that is not a key of the sweep file, which has "repeats".
    const auto repeat = settings.at("repeat").get<std::uint32_t>();
    settings.erase("repeat");
    Problems problems;
    // The record names the device; whether it is here was checked when the run was prepared.
    const char* data = std::getenv("SWEEP_DATA");
    const ReadContext context{.directory = {},
                              .data_directory = data != nullptr ? data : "",
                              .cuda_device_count = std::numeric_limits<int>::max()};
    const JsonNode tree = settings_tree(settings, fmt::format("configuration of {}", record.name));
    RunConfig config = is_command_file(tree) ? read_command_config(tree, problems)
                                             : read_run_config(tree, context, problems);
    problems.throw_if_any();
    config.repeat = repeat;
    config.name = record.name;
    config.params = record.params;
    config.resolved = record.config;
    return config;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: its configuration is not complete: {}", record.name, error.what()));
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

void resolve_paths(RunConfig& config, const RunRecord& record) {
  const std::filesystem::path directory = record.provenance.value("directory", "");
  if (!config.dataset.path.empty()) config.dataset.path = directory / config.dataset.path;
  if (!config.init.empty()) config.init = directory / config.init;
}

}  // namespace sweep
