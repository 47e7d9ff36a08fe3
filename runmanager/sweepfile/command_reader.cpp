#include "runmanager/sweepfile/command_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "runmanager/config/metrics.h"
#include "runmanager/sweepfile/metric_pattern.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string absolute(const std::string& path, const fs::path& directory) {
  return (fs::current_path() / directory / path).lexically_normal().string();
}

// The texts of a list; reports what is none.
std::vector<std::string> read_texts(const JsonView& node, const char* allowed, Problems& problems) {
  std::vector<std::string> texts;
  if (!node->is_array() || node->empty()) {
    problems.add_value(node, allowed);
    return texts;
  }
  for (const JsonView& element : node.children()) {
    if (!element->is_string() || element.text().find('\0') != std::string::npos)
      problems.add_value(element, "a text");
    texts.push_back(element.text());
  }
  return texts;
}

void read_words(const JsonView& node, CommandSpec& spec, Problems& problems) {
  const bool is_text = node->is_string();
  if (is_text && !spec.shell)
    return problems.add(node,
                        "got one text, want a list of words, such as [\"python3\", \"train.py\"]; or "
                        "\"shell\": true");
  if (spec.shell && !is_text && node->size() > 1)
    return problems.add_value(node, "one text, as \"shell\" is true");
  spec.words = is_text ? std::vector{node.text()}
                       : read_texts(node, "a list of words, such as [\"python3\", \"train.py\", \"{flags}\"]",
                                    problems);
  if (!spec.words.empty() && spec.words[0].empty()) problems.add_value(node, "a program as the first word");
}

void read_metrics(const JsonView& node, CommandSpec& spec, Problems& problems) {
  if (!node->is_object())
    return problems.add_value(node,
                              "an object of metrics and regular expressions: {\"loss\": \"loss=([0-9.]+)\"}");
  for (const JsonView& member : node.children()) {
    if (!member->is_string()) {
      problems.add_value(member, "a regular expression, whose first group is the value");
      continue;
    }
    spec.metrics.emplace_back(member.key(), member.text());
    try {
      MetricPattern check(member.text());
    } catch (const ConfigError& error) {
      problems.add_value(member, error.what());
    }
  }
}

// "timeout": an object, or the seconds of the run alone.
void read_timeout(const JsonView& node, CommandSpec& spec, Problems& problems) {
  if (node->is_number()) {
    spec.timeout = node.number();
    if (!(spec.timeout >= 0)) problems.add_value(node, "a number of seconds >= 0");
    return;
  }
  if (!node->is_object())
    return problems.add_value(node, "a number of seconds, or an object with any of: run, silence, grace");
  const Json json = complete_object(node, timeout_settings(), {}, problems);
  spec.timeout = json.at("run");
  spec.silence = json.at("silence");
  spec.grace = json.at("grace");
}

}  // namespace

void make_command_self_contained(JsonDocument& root, const fs::path& directory) {
  Json& cwd = root.json.emplace("cwd", "").first.value();
  if (cwd.is_string() && cwd != kRunCwd) cwd = absolute(cwd.get<std::string>(), directory);
  if (!root.json.contains("inputs")) return;
  for (Json& input : root.json["inputs"]) {
    if (input.is_string()) input = absolute(input.get<std::string>(), directory);
  }
}

RunConfig read_command_config(const JsonView& tree, Problems& problems) {
  const auto value = [&](const char* key) {
    const Setting& setting = *find_setting(command_settings(), key);
    return complete_value(setting, {tree.find(key), tree, {}, {}, problems});
  };
  CommandSpec spec;
  spec.shell = value("shell");
  read_words(tree.find("command"), spec, problems);
  if (const Json cwd = value("cwd"); cwd.is_string()) spec.cwd = cwd.get<std::string>();
  if (const JsonView inputs = tree.find("inputs"))
    spec.inputs = read_texts(inputs, "a list of paths", problems);
  if (const JsonView metrics = tree.find("metrics")) read_metrics(metrics, spec, problems);
  spec.dashes = value("flags") == "dashes";
  spec.gpus = value("gpus");
  spec.runs_per_gpu = value("runs_per_gpu");
  if (const JsonView timeout = tree.find("timeout")) read_timeout(timeout, spec, problems);
  RunConfig config;
  if (const JsonView stop = tree.find("stop"))
    read_setting("stop", complete_object(stop, command_stop_settings(), {}, problems))(config);
  config.epochs = value("reports");
  // What a task on a cluster has to ask for.
  config.device = spec.gpus > 0 ? "cuda" : "cpu";
  config.parallel.data = std::max(1, spec.gpus);
  config.log.graph = config.log.histograms = config.log.predictions = config.log.layout = false;
  config.log.images = 0;
  Json resolved = Json::object();
  for (const Setting& setting : command_settings()) {
    const JsonView given = tree.find(setting.name);
    if (given && setting.name != "params") resolved[setting.name] = *given;
  }
  resolved["params"] = Json::object();
  resolved["repeat"] = 0;
  config.resolved = std::move(resolved);
  config.command = std::make_shared<const CommandSpec>(std::move(spec));
  return config;
}

}  // namespace sweep
