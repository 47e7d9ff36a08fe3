#include "runmanager/sweepfile/command_reader.h"

#include <algorithm>

#include "runmanager/sweepfile/self_contained.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using Json = nlohmann::ordered_json;

void make_command_self_contained(JsonDocument& root, const std::filesystem::path& directory) {
  Json& cwd = root.json.emplace("cwd", "").first.value();
  if (cwd == "") cwd = ".";
  if (cwd != kRunCwd) make_absolute(cwd, root.place({"cwd"}), directory);
  if (!root.json.contains("inputs")) return;
  const JsonPlace inputs = root.place({"inputs"});
  for (Json& input : root.json["inputs"]) make_absolute(input, inputs, directory);
}

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

}  // namespace sweep
