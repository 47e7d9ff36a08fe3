#include "runmanager/sweepfile/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "runmanager/config/metrics.h"
#include "runmanager/sweepfile/dataset_reader.h"
#include "runmanager/sweepfile/parallel_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// A name from `types`, or an object with that name and arguments; without a name the arguments are those of
// spec.type. Returns whether it is good.
template <typename Spec>
bool read_named(const JsonNode& node, std::span<const NamedType> types,
                std::span<const std::string> reserved_keys, Spec& spec, Problems& problems) {
  const std::vector<std::string> names = type_names(types);
  if (!node.is(JsonKind::kString) && !node.is(JsonKind::kObject)) {
    problems.add_value(node, listed(names) + ", or an object with that \"name\" and arguments");
    return false;
  }
  const JsonNode* name = node.is(JsonKind::kObject) ? node.find("name") : &node;
  if (name != nullptr) {
    if (!name->is(JsonKind::kString) || find_type(types, name->text) == nullptr) {
      problems.add_value(*name, listed(names),
                         name->is(JsonKind::kString) ? nearest_name(name->text, names) : "");
      return false;
    }
    spec.type = name->text;
  }
  const std::size_t problems_before = problems.size();
  spec.arguments = read_arguments(node, *find_type(types, spec.type), reserved_keys, problems);
  return problems.size() == problems_before;
}

// Reports arguments that are good alone, but not together: nesterov without momentum.
template <typename Resolve>
void check_combination(const JsonNode& node, const std::string& key, const Resolve& resolve,
                       Problems& problems) {
  try {
    resolve();
  } catch (const ConfigError& error) {
    std::string_view message = error.what();
    if (message.starts_with(key + ": "))
      message.remove_prefix(key.size() + 2);  // The location says so already.
    problems.add(*node.location, message);
  }
}

OptimizerSpec read_optimizer(const JsonNode& tree, Problems& problems) {
  static const std::string reserved_keys[] = {"name"};
  OptimizerSpec optimizer;
  const JsonNode* node = tree.find("optimizer");
  if (node != nullptr && read_named(*node, optimizer_types(), reserved_keys, optimizer, problems))
    check_combination(
        *node, "optimizer", [&] { resolve_optimizer(optimizer); }, problems);
  return optimizer;
}

LossSpec read_loss(const JsonNode& tree, Problems& problems) {
  static const std::string reserved_keys[] = {"name"};
  LossSpec loss;
  if (const JsonNode* node = tree.find("loss"))
    read_named(*node, loss_types(), reserved_keys, loss, problems);
  return loss;
}

ScheduleSpec read_schedule(const JsonNode& tree, Problems& problems) {
  static const std::string reserved_keys[] = {"name"}, warmup_keys[] = {"name", "then"};
  ScheduleSpec schedule;
  const JsonNode* node = tree.find("schedule");
  if (node == nullptr) return schedule;
  const JsonNode *name = node->find("name"), *then = node->find("then");
  const bool warmup = name != nullptr && name->is(JsonKind::kString) && name->text == "warmup";
  bool good =
      read_named(*node, schedule_types(), warmup ? std::span<const std::string>(warmup_keys) : reserved_keys,
                 schedule, problems);
  if (warmup && then != nullptr) {
    std::vector<NamedType> followers;
    for (const NamedType& type : schedule_types()) {
      if (can_follow_warmup(type.name)) followers.push_back(type);
    }
    good = read_named(*then, followers, reserved_keys, schedule.then.emplace_back(), problems) && good;
  }
  if (good)
    check_combination(
        *node, "schedule", [&] { resolve_schedule(schedule); }, problems);
  return schedule;
}

// The value of a key as the type of its field.
template <typename Field>
void assign(Field& field, const ArgumentValue& value) {
  if constexpr (std::is_same_v<Field, bool>)
    field = std::get<bool>(value);
  else if constexpr (std::is_floating_point_v<Field>)
    field = std::get<double>(value);
  else if constexpr (std::is_integral_v<Field>)
    field = static_cast<Field>(std::get<std::int64_t>(value));
  else if constexpr (std::is_same_v<Field, Precision>)
    field = parse_precision(std::get<std::string>(value));
  else
    field = std::get<std::string>(value);
}

// The object at `key`, whose keys are `settings`; nullptr if it is not given, or is no object.
const JsonNode* find_object(const JsonNode& tree, const char* key, std::span<const Setting> settings,
                            Problems& problems) {
  const JsonNode* node = tree.find(key);
  if (node == nullptr) return nullptr;
  if (!node->is(JsonKind::kObject)) {
    problems.add_value(*node,
                       fmt::format("an object with any of: {}", fmt::join(setting_names(settings), ", ")));
    return nullptr;
  }
  check_keys(*node, settings, problems);
  return node;
}

std::optional<StopSpec> read_stop(const JsonNode& tree, Problems& problems) {
  const JsonNode* node = find_object(tree, "stop", stop_settings(), problems);
  if (node == nullptr) return std::nullopt;
  const SettingReader reader(node, stop_settings(), problems);
  StopSpec stop;
  stop.metric = reader.text("metric");
  const JsonNode* mode = reader.find("mode");
  stop.largest_is_best = mode != nullptr ? mode->text == "max" : metric_tagged(stop.metric)->larger_is_better;
  stop.patience = static_cast<int>(reader.integer("patience"));
  stop.min_delta = reader.number("min_delta");
  stop.restore_best = reader.boolean("restore_best");
  return stop;
}

LogOptions read_log(const JsonNode& tree, Problems& problems) {
  const JsonNode* node = find_object(tree, "log", log_settings(), problems);
  const SettingReader reader(node, log_settings(), problems);
  LogOptions log;
  for_each_log_option(log, [&](const char* key, auto& field) {
    const JsonNode* given = node != nullptr ? node->find(key) : nullptr;
    if (given != nullptr && given->is(JsonKind::kBoolean) && std::string_view(key) == "images") {
      if (!given->boolean) field = 0;  // true is the default.
    } else {
      assign(field, reader.value(key));
    }
  });
  return log;
}

// "cuda:7" on a machine with one CUDA device is a mistake. Any CUDA device on a machine without one is not:
// the file may come from another machine, and the run is skipped.
void check_device_index(const JsonNode& node, int count, Problems& problems) {
  const Device device = parse_device(node.text);
  if (!node.text.starts_with("cuda:")) return;
  if (count == 0 || device.index < count) return;
  const std::string found =
      count == 1 ? "this machine has one CUDA device, want cuda or cuda:0"
                 : fmt::format("this machine has {} CUDA devices, want cuda:0 to cuda:{}", count, count - 1);
  problems.add(*node.location, fmt::format("got {}, but {}", describe(node), found));
}

void record_origins(const JsonNode& node, const std::string& path, Origins::Locations& origins) {
  if (node.location != nullptr && !path.empty()) origins[path] = node.location;
  for (const JsonMember& member : node.members) {
    record_origins(member.value, path.empty() ? member.key : path + "." + member.key, origins);
  }
  // Errors found later point into lists only for layers.
  if (!path.starts_with("network.") || (!path.ends_with(".layers") && !path.ends_with(".shortcut"))) return;
  for (std::size_t i = 0; i < node.elements.size(); ++i) {
    record_origins(node.elements[i], path + "." + std::to_string(i), origins);
  }
}

nlohmann::ordered_json arguments_json(const Arguments& arguments, const NamedType& type) {
  auto json = nlohmann::ordered_json::object();
  for (const ArgumentType& argument : type.arguments) {  // In the table's order; Arguments is sorted by name.
    const auto found = arguments.find(argument.name);
    if (found != arguments.end())
      std::visit([&](const auto& value) { json[argument.name] = value; }, found->second);
  }
  return json;
}

nlohmann::ordered_json layers_json(const std::vector<LayerSpec>& layers) {
  auto json = nlohmann::ordered_json::array();
  for (const LayerSpec& layer : layers) {
    nlohmann::ordered_json entry = {{"name", layer.name}, {"type", layer.type}};
    const NamedType& type = *find_type(layer_types(), layer.type);
    entry.update(arguments_json(complete_arguments(type, layer.arguments, layer.name), type));
    if (!layer.layers.empty()) entry["layers"] = layers_json(layer.layers);
    if (!layer.shortcut.empty()) entry["shortcut"] = layers_json(layer.shortcut);
    json.push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json network_json(const NetworkSpec& network) {
  return {{"name", network.name}, {"layers", layers_json(network.layers)}};
}

template <typename Spec>
nlohmann::ordered_json named_json(const Spec& spec, std::span<const NamedType> types) {
  nlohmann::ordered_json json = {{"name", spec.type}};
  const NamedType& type = *find_type(types, spec.type);
  json.update(arguments_json(complete_arguments(type, spec.arguments, spec.type), type));
  return json;
}

nlohmann::ordered_json log_json(const LogOptions& options) {
  // A member of null would be made where an object is half-made if memory runs out, which ends the program.
  nlohmann::ordered_json log = nlohmann::ordered_json::object();
  for_each_log_option(options, [&](const char* key, auto field) { log[key] = field; });
  return log;
}

template <typename Field>
nlohmann::ordered_json field_json(const Field& field) {
  if constexpr (std::is_same_v<Field, Precision>)
    return precision_name(field);
  else
    return field;
}

nlohmann::ordered_json schedule_json(const ScheduleSpec& schedule) {
  nlohmann::ordered_json json = named_json(schedule, schedule_types());
  if (!schedule.then.empty()) json["then"] = named_json(schedule.then.front(), schedule_types());
  return json;
}

}  // namespace

fs::path nearest_file(const fs::path& missing) {
  constexpr std::size_t kMaxFiles = 1000;  // Larger directories take too long for a guess.
  const fs::path directory = missing.has_parent_path() ? missing.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end && names.size() < kMaxFiles;
       it.increment(failed)) {
    if (it->path().extension() == ".json") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(),
            names.end());  // Directories have no order; the suggestion must not depend on it.
  const std::string nearest = nearest_name(missing.filename().string(), names);
  return nearest.empty() ? fs::path() : missing.parent_path() / nearest;
}

std::span<const RunPart> run_parts() {
  static const RunPart parts[] = {
      {"dataset",
       [](const JsonNode& tree, const ReadContext& context, Problems& problems, RunConfig& config) {
         config.dataset = read_dataset(tree, context, problems);
         config.placement = read_placement(tree, problems);
         config.augment = read_augment(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) {
         to.dataset = from.dataset;
         to.placement = from.placement;
         to.augment = from.augment;
       },
       [](const RunConfig& config) {
         return dataset_json(config.dataset, config.placement, config.augment);
       }},
      {"network",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         const JsonNode* network = tree.find("network");
         if (network == nullptr) {
           problems.add(*tree.location,
                        "\"network\" is missing, want the name of a network file, or an object");
         } else if (!network->is(JsonKind::kNull)) {
           config.network = read_network(*network, problems);
         } else if (problems.empty()) {
           // Null is also what stands where a file could not be read, which was reported.
           problems.add_value(*network, "the name of a network file, or an object");
         }
       },
       [](const RunConfig& from, RunConfig& to) { to.network = from.network; },
       [](const RunConfig& config) { return network_json(config.network); }},
      {"optimizer",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         config.optimizer = read_optimizer(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) { to.optimizer = from.optimizer; },
       [](const RunConfig& config) { return named_json(config.optimizer, optimizer_types()); }},
      {"schedule",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         config.schedule = read_schedule(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) { to.schedule = from.schedule; },
       [](const RunConfig& config) { return schedule_json(config.schedule); }},
      {"loss",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         config.loss = read_loss(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) { to.loss = from.loss; },
       [](const RunConfig& config) { return named_json(config.loss, loss_types()); }},
      {"parallel",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         config.parallel = read_parallel(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) { to.parallel = from.parallel; },
       [](const RunConfig& config) { return parallel_json(config.parallel); }},
      {"log",
       [](const JsonNode& tree, const ReadContext&, Problems& problems, RunConfig& config) {
         config.log = read_log(tree, problems);
       },
       [](const RunConfig& from, RunConfig& to) { to.log = from.log; },
       [](const RunConfig& config) { return log_json(config.log); }}};
  return parts;
}

ArgumentValue read_simple_value(const JsonNode& tree, const char* key, const ReadContext& context,
                                Problems& problems) {
  const SettingReader reader(&tree, file_settings(), problems);
  if (std::string_view(key) == "device") {
    if (const JsonNode* device = reader.find(key))
      check_device_index(*device, context.cuda_device_count, problems);
  }
  return reader.value(key);
}

void set_simple_value(RunConfig& config, std::string_view key, const ArgumentValue& value) {
  for_each_simple_key(config, [&](const char* name, auto& field) {
    if (name == key) assign(field, value);
  });
}

nlohmann::ordered_json simple_value_json(const RunConfig& config, std::string_view key) {
  nlohmann::ordered_json json;
  for_each_simple_key(config, [&](const char* name, const auto& field) {
    if (name == key) json = field_json(field);
  });
  return json;
}

Origins::Locations origins_of(const JsonNode& tree) {
  Origins::Locations locations;
  record_origins(tree, "", locations);
  return locations;
}

RunConfig read_run_config(const JsonNode& tree, const ReadContext& context, Problems& problems) {
  check_keys(tree, file_settings(), problems);
  const SettingReader reader(&tree, file_settings(), problems);
  RunConfig config;
  for (const RunPart& part : run_parts()) part.read(tree, context, problems, config);
  if (const JsonNode* clip_norm = reader.find("clip_norm")) config.clip_norm = clip_norm->number;
  config.accumulate = static_cast<int>(reader.integer("accumulate"));
  for_each_simple_key(config, [&](const char* key, auto& field) {
    assign(field, read_simple_value(tree, key, context, problems));
  });
  if (const JsonNode* init = reader.find("init")) config.init = resolved_path(*init, context.directory);
  config.stop = read_stop(tree, problems);
  config.origins = Origins(std::make_shared<const Origins::Locations>(origins_of(tree)));
  return config;
}

nlohmann::ordered_json resolved_json(const RunConfig& config) {
  auto json = nlohmann::ordered_json::object();
  for (const RunPart& part : run_parts()) {
    if (part.key != std::string_view("log")) json[part.key] = part.json(config);
  }
  json["repeat"] = config.repeat;
  for_each_simple_key(config, [&](const char* key, const auto& field) { json[key] = field_json(field); });
  if (config.clip_norm > 0) json["clip_norm"] = config.clip_norm;
  json["accumulate"] = config.accumulate;
  if (const auto& stop = config.stop) {
    json["stop"] = {{"metric", stop->metric},
                    {"mode", stop->largest_is_best ? "max" : "min"},
                    {"patience", stop->patience},
                    {"min_delta", stop->min_delta},
                    {"restore_best", stop->restore_best}};
  }
  if (!config.init.empty()) json["init"] = config.init.string();
  json["log"] = log_json(config.log);
  return json;
}

}  // namespace sweep
