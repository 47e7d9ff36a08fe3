#include "runmanager/sweepfile/config_reader.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/suggest.h"

namespace sweep {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path nearest_file(const fs::path& missing) {
  constexpr std::size_t kMaxFiles = 1000;  // Larger directories take too long for a guess.
  const fs::path directory = missing.has_parent_path() ? missing.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end && names.size() < kMaxFiles;
       it.increment(failed)) {
    const fs::path name = it->path().filename();  // `missing` itself if it is a link to nothing
    if (name.extension() == ".json" && name != missing.filename()) names.push_back(name.string());
  }
  std::sort(names.begin(),
            names.end());  // Directories have no order; the suggestion must not depend on it.
  const std::string nearest = nearest_name(missing.filename().string(), names);
  return nearest.empty() ? fs::path() : missing.parent_path() / nearest;
}

namespace {

// The run of a person's own program, with empty "params".
RunConfig read_command_config(const JsonView& tree, Problems& problems) {
  RunConfig config;
  Json resolved = Json::object();
  for (const Setting& setting : command_settings()) {
    const JsonView given = tree.find(setting.name);
    if (given && setting.name != "params") resolved[setting.name] = *given;
  }
  resolved["params"] = Json::object();
  resolved["repeat"] = 0;
  config.resolved = std::move(resolved);
  const Json json = complete_object(tree, command_settings(), {}, problems);
  if (!problems.empty()) return config;
  const Json& timeout = json.at("timeout");
  CommandSpec spec{.words = json.at("command"),
                   .shell = json.at("shell"),
                   .cwd = json.value("cwd", ""),
                   .inputs = json.value("inputs", std::vector<std::string>()),
                   .metrics = {},
                   .dashes = json.at("flags") == "dashes",
                   .timeout = timeout.at("run"),
                   .silence = timeout.at("silence"),
                   .grace = timeout.at("grace"),
                   .gpus = json.at("gpus"),
                   .runs_per_gpu = json.at("runs_per_gpu")};
  const Json patterns = json.value("metrics", Json::object());
  for (const auto& [metric, pattern] : patterns.items()) spec.metrics.emplace_back(metric, pattern);
  read_setting("stop", json.value("stop", Json()))(config);
  config.epochs = json.at("reports");
  // What a task on a cluster has to ask for.
  config.device = spec.gpus > 0 ? "cuda" : "cpu";
  config.parallel.data = std::max(1, spec.gpus);
  config.log.graph = config.log.histograms = config.log.predictions = config.log.layout = false;
  config.log.images = 0;
  config.command = std::make_shared<const CommandSpec>(std::move(spec));
  return config;
}

}  // namespace

RunConfig read_run_config(const JsonView& tree, const ReadContext& context, Problems& problems) {
  if (is_command_file(tree)) return read_command_config(tree, problems);
  check_keys(tree, top_level_settings(), problems);
  RunConfig config;
  const Json none = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (!setting.sweepable) continue;  // not of a run
    config.resolved.set(
        setting.name, std::make_shared<const Json>(
                          complete_value(setting, {tree.find(setting.name), tree, none, context, problems})));
  }
  config.resolved.set("repeat", std::make_shared<const Json>(0));  // no key of the file, which has "repeats"
  if (!problems.empty()) return config;  // What is wrong cannot be read, and is never asked for.
  for (const Setting& setting : top_level_settings()) {
    const auto value = config.resolved.find(setting.name);
    if (setting.sweepable) read_setting(setting.name, value != nullptr ? *value : Json())(config);
  }
  return config;
}

}  // namespace sweep
