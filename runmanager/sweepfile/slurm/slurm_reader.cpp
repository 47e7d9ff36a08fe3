#include "runmanager/sweepfile/slurm/slurm_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "runmanager/sweepfile/key_path.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSecondsPerMinute = 60;
constexpr std::size_t kMaxShownWord = 60;
// The controller looks for jobs at their limit every half a minute, so that a warning may come that much
// late.
constexpr int kSlackSeconds = 30;

bool is_task_object(const std::string& key) { return key == "cpu" || key == "cuda"; }

// What tasks of the kind `key`, "cpu" or "cuda", ask for: the keys of "slurm", and over them those of its
// object `key`. GPUs are for runs on CUDA, where it does not say so itself.
SlurmTasks tasks_of(const JsonNode& slurm, const std::string& key, Problems& problems) {
  JsonNode asked = slurm;
  std::erase_if(asked.members, [&](const JsonMember& member) {
    return find_setting(slurm_task_settings(), member.key) == nullptr ||
           (key == "cpu" && member.key == "gres");
  });
  if (const JsonNode* own = slurm.find(key)) {
    for (const JsonMember& member : own->members) {
      std::erase_if(asked.members, [&](const JsonMember& shared) { return shared.key == member.key; });
      asked.members.push_back(member);
    }
  }
  const Json json = complete_object(&asked, slurm_task_settings(), {}, problems);
  return {.partition = json.value("partition", ""),
          .account = json.value("account", ""),
          .qos = json.value("qos", ""),
          .reservation = json.value("reservation", ""),
          .time = json.value("time", ""),
          .memory = json.value("memory", ""),
          .gres = json.value("gres", ""),
          .constraint = json.value("constraint", ""),
          .exclude = json.value("exclude", ""),
          .cpus = json.value("cpus", 0),
          .options = json.value("options", std::vector<std::string>()),
          .setup = json.value("setup", std::vector<std::string>())};
}

// The task has to be warned before its end, and to have some time before the warning.
void check_time(const JsonNode& object, const std::string& time, int warning_seconds, Problems& problems) {
  const long minutes = slurm_minutes(time);
  if (time.empty() || minutes <= 0 || minutes * kSecondsPerMinute >= warning_seconds + kSlackSeconds) return;
  const JsonNode* node = object.find("time");
  problems.add(
      node != nullptr ? *node->location : *object.location,
      fmt::format("\"{}\" is {} minute{}, want more than the {} s of \"warning_seconds\", in which a "
                  "run writes its checkpoint; hours are written as \"4:00:00\"",
                  time, minutes, minutes == 1 ? "" : "s", warning_seconds));
}

// The value that VALUE of an option stands for.
JsonNode option_value(const std::string& value, const Setting& setting,
                      const std::shared_ptr<const JsonLocation>& location) {
  JsonNode node;
  node.kind = JsonKind::kString;
  node.text = value;
  node.location = location;
  if (setting.kind != ArgumentKind::kInteger && setting.kind != ArgumentKind::kBoolean) return node;
  try {
    return parse_json(value, *location->source, false, location->path);
  } catch (const ConfigError&) {
    return node;  // Which is refused as what it is.
  }
}

// Adds a line to the list at `path`, which `is_first` replaces what the file has there.
void add_line(JsonNode& root, const KeyPath& path, const JsonNode& line, bool is_first, Problems& problems) {
  JsonNode list;
  list.kind = JsonKind::kArray;
  list.location = line.location;
  if (!is_first) {
    if (const std::optional<JsonNode> before = value_at(root, path)) list = *before;
  }
  list.elements.push_back(line);
  set_value(root, path, list, line.location, problems);
}

}  // namespace

void apply_slurm_options(JsonNode& root, std::span<const std::string> words, Problems& problems) {
  std::vector<KeyPath> seen;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const bool good = equals != std::string::npos && equals > 0 && equals + 1 < word.size() &&
                      find_bad_utf8(word) == std::string::npos;
    const std::string key = good ? word.substr(0, equals) : "";
    const auto location = std::make_shared<const JsonLocation>(JsonLocation{
        std::make_shared<const std::string>(fmt::format("--slurm {}", shown_text(word, kMaxShownWord))), 0, 0,
        0, ""});
    if (!good) {
      problems.add(*location, "want KEY=VALUE, such as partition=gpu");
      continue;
    }
    const std::size_t dot = key.find('.');
    const bool is_part = dot != std::string::npos && is_task_object(key.substr(0, dot));
    const std::string last = is_part ? key.substr(dot + 1) : key;
    const std::span<const Setting> settings = is_part ? slurm_task_settings() : slurm_settings();
    const Setting* setting = find_setting(settings, last);
    if (setting == nullptr || is_task_object(last)) {
      std::vector<std::string> names = setting_names(settings);
      std::erase_if(names, is_task_object);
      problems.add(*location,
                   fmt::format("unknown key {}, allowed: {}{}{}", in_quotes(key), fmt::join(names, ", "),
                               is_part ? "" : ", and cpu. or cuda. in front of those of a task",
                               suggestion(last, names)));
      continue;
    }
    KeyPath path = {"slurm"};
    if (is_part) path.push_back(key.substr(0, dot));
    path.push_back(last);
    const JsonNode value = option_value(word.substr(equals + 1), *setting, location);
    const bool is_first = std::ranges::find(seen, path) == seen.end();
    const bool is_list = last == "setup" || last == "options";
    if (is_list) {
      add_line(root, path, value, is_first, problems);
    } else if (is_first) {
      set_value(root, path, value, location, problems);
    } else {
      problems.add(*location, fmt::format("{} is given twice, want it once", in_quotes(key)));
    }
    seen.push_back(path);
  }
}

SlurmSpec read_slurm(const JsonNode& root, Problems& problems) {
  SlurmSpec spec;
  const JsonNode* node = root.find("slurm");
  if (node == nullptr) return spec;
  const Json json = complete_object(node, slurm_settings(), {}, problems);
  spec.tasks = json.at("tasks");
  spec.runs_per_task = json.at("runs_per_task");
  spec.max_restarts = json.at("max_restarts");
  spec.warning_seconds = json.at("warning_seconds");
  spec.report = json.at("report");
  spec.program = json.value("program", "");
  for (const auto& [key, tasks] : {std::pair("cpu", &spec.cpu), std::pair("cuda", &spec.cuda)}) {
    *tasks = tasks_of(*node, key, problems);
    const JsonNode* own = node->find(key);
    check_time(own != nullptr && own->find("time") != nullptr ? *own : *node, tasks->time,
               spec.warning_seconds, problems);
  }
  return spec;
}

SlurmSpec slurm_spec(const Sweep& sweep) {
  const auto nowhere = std::make_shared<const JsonLocation>(
      JsonLocation{std::make_shared<const std::string>("sweep.json"), 0, 0, 0, ""});
  Problems problems;
  SlurmSpec spec = read_slurm(from_json(sweep.resolved, nowhere), problems);
  problems.throw_if_any();  // None, since load_sweep() has found none.
  return spec;
}

}  // namespace sweep
