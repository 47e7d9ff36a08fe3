#include "runmanager/sweepfile/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/text.h"

namespace sweep {

using Json = nlohmann::ordered_json;

namespace {

// Once a file is known to be wrong, this many combinations are enough to find what else is.
constexpr std::size_t kRunsCheckedAfterProblem = 2000;

std::optional<ParamValue> as_type_of(const Json& value, const ParamValue& example) {
  if (std::holds_alternative<double>(example) && value.is_number()) return value.get<double>();
  if (std::holds_alternative<std::int64_t>(example) && value.is_number_integer())
    return value.get<std::int64_t>();
  if (std::holds_alternative<bool>(example) && value.is_boolean()) return value.get<bool>();
  if (std::holds_alternative<std::string>(example) && value.is_string()) return value.get<std::string>();
  return std::nullopt;
}

// The values of axes, each key with one type. Paths are shortened to the parts in which those of a key
// differ: they are absolute and would make long names.
std::map<const Axis*, std::vector<ParamValue>> shown_values(const std::vector<const Axis*>& axes) {
  Params all;
  std::map<std::string, std::vector<std::string>> paths;  // by key
  for (const Axis* axis : axes) {
    for (const JsonView& value : JsonView(axis->values).children()) {
      all.emplace_back(axis->key, param_of(value, axis->path));
      if (is_file_path(axis->path) && value->is_string()) paths[axis->key].push_back(value.text());
    }
  }
  for (const auto& [key, texts] : paths) {
    const std::map<std::string, std::string> names = short_paths(texts);
    for (auto& [name, value] : all) {
      const auto known = name == key ? names.find(param_text(value)) : names.end();
      if (known != names.end()) value = known->second;
    }
  }
  unify_types({&all});
  std::map<const Axis*, std::vector<ParamValue>> shown;
  auto next = all.begin();
  for (const Axis* axis : axes) {
    for (std::size_t i = 0; i < axis->values.json.size(); ++i)
      shown[axis].push_back(std::move((next++)->second));
  }
  return shown;
}

// What is wrong cannot be read, and is never asked for.
RunSection read_section(const Setting& setting, const JsonView& tree, const ReadContext& context,
                        Problems& problems) {
  const auto json = std::make_shared<const Json>(
      complete_value(setting, {tree.find(setting.name), tree, {}, context, problems}));
  return {problems.empty() ? read_setting(setting.name, *json) : [](RunConfig&) {}, json};
}

void put_section(const RunSection& section, const Setting& setting, RunConfig& config) {
  section.put(config);
  config.resolved.set(setting.name, section.json);
}

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
  for (const Setting& setting : top_level_settings()) {
    if (setting.sweepable) put_section(read_section(setting, tree, context, problems), setting, config);
  }
  config.resolved.set("repeat", std::make_shared<const Json>(0));  // no key of the file, which has "repeats"
  return config;
}

ParamValue param_of(const JsonView& value, const KeyPath& path) {
  if (path == KeyPath{"network"} && value.find("name")->is_string()) return value.find("name").text();
  if (path == KeyPath{"parallel"}) {
    Problems ignored;  // Those of the file are found when the run is read.
    return parallel_text(parallel_of(
        complete_value(*find_setting(top_level_settings(), path[0]), {value, value, {}, {}, ignored})));
  }
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_string()) return value.text();
  if (!value->is_number()) return value->dump();
  // A learning rate of 1 is a number, not an integer: the key's type decides, not how the value is written.
  const std::optional<Setting> setting = setting_at(path);
  const bool is_double = value->is_number_float() || (setting && setting->kind == ArgumentKind::kNumber);
  if (is_double) return value.number();
  return value->get<std::int64_t>();
}

JsonDocument with_values(JsonDocument tree, std::vector<Assignment> values, NetworkFiles& files,
                         Problems& problems) {
  std::ranges::stable_sort(values, {}, [](const Assignment& value) { return value.path.size(); });
  const auto below = std::ranges::find_if(values, [](const Assignment& a) { return a.path.size() > 1; });
  std::map<KeyPath, KeyPath> given;  // by the path with indices only
  const auto set = [&](const Assignment& a) {
    const KeyPath at = set_value(tree, a.path, a.value, a.place, problems);
    const KeyPath& first = given.try_emplace(at, a.path).first->second;
    if (!at.empty() && first != a.path)
      problems.add(a.place, fmt::format("{} is the same key as {}, want one of them",
                                        in_quotes(joined(a.path)), in_quotes(joined(first))));
  };
  std::for_each(values.begin(), below, set);
  files.load(tree, problems);
  const bool network_failed = JsonView(tree).find("network")->is_null();
  std::for_each(below, values.end(), [&](const Assignment& value) {
    if (!network_failed || value.path[0] != "network") set(value);  // Reported by files.load().
  });
  return tree;
}

RunReader::RunReader(const JsonView& file, JsonDocument tree, std::vector<Assignment> plain,
                     NetworkFiles files, ReadContext context, Problems& problems)
    : space_(file, problems),
      shown_(shown_values(axes_)),
      tree_(std::move(tree)),
      plain_(std::move(plain)),
      files_(std::move(files)),
      context_(std::move(context)) {}

// The file of a run with only the top-level key `key`; "": with all.
JsonDocument RunReader::tree_with(const Combination& combination, const std::string& key,
                                  Problems& problems) {
  const JsonView file(tree_);
  JsonDocument tree(Json::object(), file.place());
  for (const JsonView& member : file.children()) {
    if (key.empty() || member.key() == key) tree.set(tree.json[member.key()], {member.key()}, member);
  }
  std::vector<Assignment> values;
  for (const Assignment& assignment : plain_) {
    if (key.empty() || assignment.path[0] == key) values.push_back(assignment);
  }
  for (const AxisValue& value : combination.values) {
    const Axis& axis = *value.axis;
    if (key.empty() || axis.path[0] == key) values.push_back({axis.path, axis.place, value.value()});
  }
  return with_values(std::move(tree), std::move(values), files_, problems);
}

const RunSection& RunReader::section_of(const Combination& combination, const Setting& setting,
                                        Problems& problems) {
  std::vector<AxisValue> choices;
  std::ranges::copy_if(combination.values, std::back_inserter(choices),
                       [&](const AxisValue& value) { return value.axis->path[0] == setting.name; });
  const auto [found, is_new] = sections_.try_emplace({&setting, std::move(choices)});
  RunSection& section = found->second;
  if (is_new)
    section = read_section(setting, tree_with(combination, setting.name, problems), context_, problems);
  return section;
}

std::optional<std::string> RunReader::place_of(const Combination& combination, const std::string& path) {
  Problems ignored;
  const KeyPath parts = key_path(path);
  const JsonDocument tree = tree_with(combination, parts[0], ignored);
  const JsonView value = find_path(tree, parts);
  return value ? std::optional(to_string(value.place())) : std::nullopt;
}

RunConfig RunReader::read(const Combination& combination, Problems& problems) {
  const bool is_command = is_command_file(tree_);
  if (!common_)
    common_ = read_run_config(is_command ? tree_ : tree_with(combination, "", problems), context_, problems);
  RunConfig config = *common_;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  while (repeats_.size() <= config.repeat) repeats_.push_back(std::make_shared<const Json>(repeats_.size()));
  config.resolved.set("repeat", repeats_[config.repeat]);
  if (is_command) {  // Every parameter is the program's.
    Json& params = config.resolved["params"];
    for (const AxisValue& value : combination.values) {
      const Json& param = params[value.axis->key] = value.axis->json_at(value.number);
      if (value.axis->key == "device") config.device = param.is_string() ? param.get<std::string>() : "";
    }
    return config;
  }
  for (const AxisValue& value : combination.values) {
    const Setting* setting = find_setting(top_level_settings(), value.axis->path[0]);
    if (std::ranges::find(changing_, setting) == changing_.end()) changing_.push_back(setting);
  }
  for (const Setting* setting : changing_) {
    put_section(section_of(combination, *setting, problems), *setting, config);
  }
  config.where = [self = shared_from_this(), combination](const std::string& path) {
    return self->place_of(combination, path);
  };
  // Layers that name their devices say what kind of device the run needs.
  if (config.device == "auto" && !config.parallel.model.empty())
    config.device =
        config.parallel.model.front().device.substr(0, config.parallel.model.front().device.find(':'));
  return config;
}

// The values of a combination, and its repeat if there are repeats.
Params RunReader::params_of(const Combination& combination) const {
  Params params;
  params.reserve(combination.values.size() + (space_.has_repeats() ? 1 : 0));
  for (const auto& [axis, number] : combination.values)
    params.emplace_back(axis->key, axis->range ? param_of(axis->value_at(number), axis->path)
                                               : shown_.at(axis)[static_cast<std::size_t>(number)]);
  if (space_.has_repeats()) params.emplace_back(kRepeatKey, static_cast<std::int64_t>(combination.repeat));
  return params;
}

// The swept keys that `run` has no value of, each with the value that holds in the run: that of its complete
// settings, or else the default, as it would be of an optimizer that the run does not use. Leaves out keys
// without such a value, and all keys of a program, which has its own defaults.
Params RunReader::values_in_force(const RunConfig& run) const {
  Params values;
  for (const Axis* axis : axes_) {
    if (find_param(run.params, axis->key) != nullptr || find_param(values, axis->key) != nullptr) continue;
    Json settings = Json::object();
    if (const auto section = run.resolved.find(axis->path[0])) settings[axis->path[0]] = *section;
    const JsonDocument document = document_of(std::move(settings), "settings");
    if (auto value = as_type_of(value_at(document, axis->path), shown_.at(axis)[0]))
      values.emplace_back(axis->key, *std::move(value));
  }
  return values;
}

void RunReader::read_grids(const JsonView& root, Sweep& sweep, Problems& problems) {
  const std::vector<Combination> combinations = space_.combinations(root, problems);
  sweep.keys = space_.keys();
  std::map<const Rule*, std::string> reasons;
  for (const Rule& rule : space_.exclude()) reasons[&rule] = exclusion_reason(rule);
  std::vector<Params> params;
  std::set<std::string> known;  // keys that a run has; an axis whose conditions never hold is in none
  sweep.runs.reserve(combinations.size());
  params.reserve(combinations.size());
  for (const Combination& combination : combinations) {
    Params values = params_of(combination);
    if (combination.excluded != nullptr) {
      sweep.excluded.push_back({std::move(values), reasons.at(combination.excluded)});
      continue;
    }
    if (!problems.empty() && sweep.runs.size() >= kRunsCheckedAfterProblem) break;
    sweep.runs.push_back(read(combination, problems));
    sweep.runs.back().index = params.size();
    for (const auto& [key, value] : values) known.insert(key);
    params.push_back(std::move(values));
  }
  if (combinations.empty() && !is_command_file(root)) read({}, problems);
  problems.throw_if_any();
  const std::vector<std::string> names = run_names(params);
  for (RunConfig& run : sweep.runs) {
    run.name = names[run.index];
    run.params = std::move(params[run.index]);
    run.not_swept = values_in_force(run);
    std::erase_if(run.not_swept, [&known](const auto& param) { return !known.contains(param.first); });
  }
}

// Has to be called for one after the other, as names depend on those before; for the last one it may be
// called again.
RunConfig RunReader::read_trial(std::size_t index, const SearchPoint& point, int repeat) {
  Combination combination = space_.combination_at(point);
  combination.repeat = repeat;
  Problems problems;
  RunConfig config = read(combination, problems);
  problems.throw_if_any();
  config.index = index;
  config.params = params_of(combination);
  config.not_swept = values_in_force(config);
  config.name = run_name(config.params);
  if (trials_.try_emplace(lower_case(config.name), index).first->second != index)
    config.name += fmt::format("~{}", index + 1);
  return config;
}

void RunReader::check_values_together() {
  constexpr std::size_t kPoints = 100;
  Problems problems;
  for (const SearchPoint& point : Sampler(domain(), {}).first_points(kPoints))
    read(space_.combination_at(point), problems);
  problems.throw_if_any();
}

void RunReader::draw_trials(const SearchSpec& search, int epochs, Sweep& sweep) {
  auto source = std::make_shared<TrialSource>();
  source->domain = domain();
  const bool is_population = search.method == SearchMethod::kPopulation;
  source->make_run = [self = shared_from_this(), is_population](std::size_t index, const SearchPoint& point) {
    RunConfig config = self->read_trial(index, point, 0);
    if (is_population) config.resolved[kLineageKey] = Json::array();
    return config;
  };
  source->points = make_sampler(search, source->domain).first_points(points_at_start(search, epochs));
  for (const SearchPoint& point : source->points) {
    if (!space_.has_repeats()) sweep.runs.push_back(source->make_run(sweep.runs.size(), point));
    for (int repeat = 0; space_.has_repeats() && repeat < space_.repeats(); ++repeat)
      sweep.runs.push_back(read_trial(sweep.runs.size(), point, repeat));
  }
  sweep.keys = space_.keys();
  sweep.trials = std::move(source);
}

}  // namespace sweep
