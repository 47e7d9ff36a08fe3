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

constexpr int kSecondsPerMinute = 60;
constexpr std::size_t kMaxShownWord = 60;
// The controller looks for jobs at their limit every half a minute, so that a warning may come that much
// late.
constexpr int kSlackSeconds = 30;

bool is_task_object(const std::string& key) { return key == "cpu" || key == "cuda"; }

std::vector<std::string> lines_of(const JsonNode& node) {
  if (node.is(JsonKind::kString)) return {node.text};
  std::vector<std::string> lines;
  for (const JsonNode& line : node.elements) lines.push_back(line.text);
  return lines;
}

// Replaces in `tasks` what `object` says. `gives_gres`: whether its "gres" is meant for them.
void read_tasks(const JsonNode& object, std::span<const Setting> settings, bool gives_gres, SlurmTasks& tasks,
                Problems& problems) {
  const SettingReader reader(&object, settings, problems);
  const std::pair<const char*, std::string*> words[] = {
      {"partition", &tasks.partition},     {"account", &tasks.account}, {"qos", &tasks.qos},
      {"reservation", &tasks.reservation}, {"time", &tasks.time},       {"memory", &tasks.memory},
      {"constraint", &tasks.constraint},   {"exclude", &tasks.exclude}};
  for (const auto& [key, field] : words) {
    if (const JsonNode* node = reader.find(key)) *field = node->text;
  }
  if (const JsonNode* gres = reader.find("gres"); gres != nullptr && gives_gres) tasks.gres = gres->text;
  if (const JsonNode* cpus = reader.find("cpus")) tasks.cpus = static_cast<int>(cpus->integer);
  if (const JsonNode* options = reader.find("options")) tasks.options = lines_of(*options);
  if (const JsonNode* setup = reader.find("setup")) tasks.setup = lines_of(*setup);
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
  if (!node->is(JsonKind::kObject)) {
    problems.add_value(
        *node, fmt::format("an object with any of: {}", fmt::join(setting_names(slurm_settings()), ", ")));
    return spec;
  }
  check_keys(*node, slurm_settings(), problems);
  const SettingReader reader(node, slurm_settings(), problems);
  spec.tasks = static_cast<int>(reader.integer("tasks"));
  spec.runs_per_task = static_cast<int>(reader.integer("runs_per_task"));
  spec.max_restarts = static_cast<int>(reader.integer("max_restarts"));
  spec.warning_seconds = static_cast<int>(reader.integer("warning_seconds"));
  spec.report = reader.boolean("report");
  if (const JsonNode* program = reader.find("program")) spec.program = program->text;
  for (const auto& [key, tasks] : {std::pair("cpu", &spec.cpu), std::pair("cuda", &spec.cuda)}) {
    read_tasks(*node, slurm_settings(), tasks == &spec.cuda, *tasks, problems);
    const JsonNode* own = node->find(key);
    if (own != nullptr && !own->is(JsonKind::kObject)) {
      problems.add_value(*own, fmt::format("an object with any of: {}",
                                           fmt::join(setting_names(slurm_task_settings()), ", ")));
      continue;
    }
    if (own != nullptr) {
      check_keys(*own, slurm_task_settings(), problems);
      read_tasks(*own, slurm_task_settings(), true, *tasks, problems);
    }
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
