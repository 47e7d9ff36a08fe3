// The JSON schema of sweep files, made of the tables that the program itself checks with.
#include <tuple>

#include "core/network/layers.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/sweepfile/settings/setting_kinds.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"
#include "runmanager/sweepfile/sweep_file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

Json reference(const char* name) { return {{"$ref", std::string("#/$defs/") + name}}; }

Json any_of(std::initializer_list<Json> choices) {
  Json list = Json::array();
  for (const Json& choice : choices) list.push_back(choice);
  return {{"anyOf", std::move(list)}};
}

Json object_with(Json properties, std::vector<std::string> required = {}) {
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

using rows::list_of;

Json limited(const char* type, const ArgumentType& value) {
  Json schema = {{"type", type}};
  if (value.minimum > -kUnbounded)
    schema[value.excludes_minimum() ? "exclusiveMinimum" : "minimum"] = value.minimum;
  if (value.maximum < kUnbounded) schema[value.exclusive ? "exclusiveMaximum" : "maximum"] = value.maximum;
  return schema;
}

Json pair_of(Json items) {
  Json schema = list_of(std::move(items), 2);
  schema["maxItems"] = 2;
  return schema;
}

// The schema of a simple value, without its help and default.
Json value_schema(const ArgumentType& type) {
  switch (type.kind) {
    case ArgumentKind::kBoolean:
      return {{"type", "boolean"}};
    case ArgumentKind::kInteger:
      return limited("integer", type);
    case ArgumentKind::kIntegerPair:
      return any_of({limited("integer", type), pair_of(limited("integer", type))});
    case ArgumentKind::kNumber:
      return limited("number", type);
    case ArgumentKind::kNumberPair:
      return pair_of(limited("number", type));
    case ArgumentKind::kNumberList:
      return list_of(limited("number", type), 1);
    case ArgumentKind::kCountOrFraction:
      return any_of({Json{{"type", "integer"}, {"minimum", 0}},
                     Json{{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}}});
    case ArgumentKind::kChoice:
      return {{"enum", type.choices}};
    case ArgumentKind::kPath:
      return {{"type", "string"}, {"minLength", 1}};
    case ArgumentKind::kCustom:
      break;
  }
  return Json::object();
}

Json value_schema(const Setting& setting) {
  if (setting.shape == SettingShape::kSimple) return value_schema(static_cast<const ArgumentType&>(setting));
  if (setting.rule != nullptr) {
    const std::string_view pattern = setting.rule->pattern;
    if (pattern == kAnyText) return {{"type", "string"}};
    if (pattern == kNotEmpty) return {{"type", "string"}, {"minLength", 1}};
    return {{"type", "string"}, {"pattern", pattern}};
  }
  if (!setting.elements) return setting.schema.is_null() ? Json::object() : setting.schema;
  const Elements& elements = *setting.elements;
  if (setting.shape == SettingShape::kMap) {
    Json map = {{"type", "object"}, {"additionalProperties", value_schema(elements.item)}};
    if (elements.counts.minimum > 0) map["minProperties"] = elements.counts.minimum;
    return map;
  }
  Json list = list_of(value_schema(elements.item), elements.counts.minimum);
  if (elements.counts.maximum < std::numeric_limits<std::size_t>::max())
    list["maxItems"] = elements.counts.maximum;
  return elements.alone ? any_of({value_schema(*elements.alone), std::move(list)}) : list;
}

// Adds help and default to the schema of a value.
Json described(Json schema, const ArgumentType& type) {
  if (!type.help.empty()) schema["description"] = type.help;
  if (type.default_value)
    std::visit([&](const auto& value) { schema["default"] = value; }, *type.default_value);
  return schema;
}

Json properties_of(std::span<const Setting> settings) {
  Json properties = Json::object();
  for (const Setting& setting : settings)
    properties[setting.name] = described(value_schema(setting), setting);
  return properties;
}

// A layer or optimizer type as an object whose member `selector` has the type's name.
Json type_schema(const NamedType& type, const std::string& selector, Json properties,
                 bool selector_required) {
  properties[selector] = {{"const", type.name}};
  std::vector<std::string> required;
  if (selector_required) required.push_back(selector);
  for (const ArgumentType& argument : type.arguments) {
    properties[argument.name] = described(value_schema(argument), argument);
    if (!argument.default_value && !argument.optional) required.push_back(argument.name);
  }
  return object_with(std::move(properties), std::move(required));
}

Json layer_schema() {
  Json choices = Json::array();
  for (const NamedType& type : layer_types()) {
    const Json name = {{"type", "string"},
                       {"pattern", "^[A-Za-z0-9_-]{1,64}$"},
                       {"description", "default: the layer's index, from 0"}};
    Json schema = type_schema(type, "type", {{"name", name}}, true);
    if (has_inner_layers(type.name)) {
      schema["properties"]["layers"] = reference("layers");
      schema["required"].push_back("layers");
    }
    if (type.name == "residual") {
      schema["properties"]["shortcut"] = list_of(reference("layer"));
      schema["properties"]["shortcut"]["description"] =
          "added to the layers' output; default: the input itself";
    }
    choices.push_back(std::move(schema));
  }
  return {{"oneOf", std::move(choices)}};
}

// One of `types` by its name, or as an object; without a name its arguments are those of `default_type`.
Json named_schema(std::span<const NamedType> types, const std::string& default_type) {
  // A name alone is also valid for types with required arguments: keys such as schedule.step_size may give
  // them.
  Json choices = Json::array({Json{{"enum", type_names(types)}}});
  for (const NamedType& type : types) {
    choices.push_back(type_schema(type, "name", Json::object(), type.name != default_type));
  }
  return {{"anyOf", std::move(choices)}, {"default", default_type}};
}

// Adds what may come after a warmup to the schema of "schedule".
void add_warmup_followers(Json& schema) {
  std::vector<NamedType> followers;
  for (const NamedType& type : schedule_types()) {
    if (can_follow_warmup(type.name)) followers.push_back(type);
  }
  Json then = named_schema(followers, schedule_types().front().name);
  then.erase("default");
  then["description"] =
      "what comes after the warmup, with epochs counted from there; left out: lr stays lr times end_factor";
  for (Json& choice : schema["anyOf"]) {
    if (choice.contains("properties") && choice["properties"]["name"]["const"] == "warmup")
      choice["properties"]["then"] = then;
  }
}

Json dataset_schema() {
  std::vector<std::string> known(dataset_names().begin(), dataset_names().end());
  Json properties = properties_of(dataset_settings());
  properties["name"]["type"] = "string";
  properties["normalize"].erase("$ref");
  properties["normalize"].update(
      any_of({Json{{"enum", {"none", "train"}}},
              object_with(properties_of(normalize_settings()), setting_names(normalize_settings()))}));
  Json object = object_with(std::move(properties));
  object["anyOf"] =
      Json::array({Json{{"required", {"path"}}},
                   Json{{"required", {"name"}}, {"properties", {{"name", {{"enum", known}}}}}}});
  return any_of({Json{{"enum", known}}, std::move(object)});
}

// A list of values, numbers that are counted out, or a range that a search draws from.
Json axis_schema(Json value) {
  Json list = list_of(std::move(value), 1);
  list["uniqueItems"] = true;
  return any_of({std::move(list), reference("range")});
}

Json range_schema() {
  Json forms = Json::array();
  for (const AxisForm& form : axis_forms()) {
    const std::size_t count = form.drawn ? 2 : 3;
    Json numbers = list_of({{"type", form.drawn && has_integers(*form.drawn) ? "integer" : "number"}}, count);
    numbers["maxItems"] = count;
    numbers["description"] = std::string(form.numbers) + (form.drawn            ? "; for a search"
                                                          : form.key == "range" ? ""
                                                                                : "; both ends included");
    const std::string key(form.key);
    forms.push_back(object_with({{key, std::move(numbers)}}, {key}));
  }
  return {{"oneOf", std::move(forms)}};
}

Json axes_schema() {
  Json properties = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (setting.sweepable) properties[setting.name] = axis_schema(value_schema(setting));
  }
  for (const NamedType& type : optimizer_types()) {
    for (const ArgumentType& argument : type.arguments) {
      properties[argument.name] = axis_schema(value_schema(argument));
    }
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  std::string keys_with_parts;
  for (const Setting& setting : top_level_settings()) {
    if (setting.sweepable && setting.has_parts)
      keys_with_parts += (keys_with_parts.empty() ? "" : "|") + setting.name;
  }
  schema["patternProperties"] = {
      {R"(^(params\.)?()" + keys_with_parts + R"()\..)", axis_schema(Json::object())}};
  schema["additionalProperties"] = false;
  return schema;
}

// A program of one's own has keys of its own in addition to those that both have, and parameters of any name.
void add_programs(Json& schema) {
  Json& properties = schema["properties"];
  Json axes = {{"type", "object"}, {"additionalProperties", axis_schema(Json::object())}};
  Json& definitions = schema["$defs"];
  definitions["program_axes"] = std::move(axes);
  definitions["program_search"] = object_with(properties_of(command_search_settings()));
  definitions["program_stop"] = object_with(properties_of(command_stop_settings()));
  definitions["timeout"] =
      any_of({Json{{"type", "number"}, {"minimum", 0}}, object_with(properties_of(timeout_settings()))});
  Json of_networks = Json::object(), of_programs = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (find_setting(command_settings(), setting.name) == nullptr) of_programs[setting.name] = false;
  }
  for (const Setting& setting : command_settings()) {
    if (find_setting(top_level_settings(), setting.name) != nullptr) continue;
    properties.update(properties_of(std::span(&setting, 1)));
    if (setting.name != "command") schema["dependentRequired"][setting.name] = {"command"};
  }
  for (const auto& [key, network, program] :
       {std::tuple("params", "axes", "program_axes"), std::tuple("search", "search", "program_search"),
        std::tuple("stop", "stop", "program_stop")}) {
    of_networks[key] = reference(network);
    of_programs[key] = reference(program);
    properties[key].erase("$ref");
    properties[key]["anyOf"] = Json::array({reference(network), reference(program)});
  }
  of_networks["grids"] = list_of(reference("axes"), 1);
  of_programs["grids"] = list_of(reference("program_axes"), 1);
  properties["grids"]["items"] = any_of({reference("axes"), reference("program_axes")});
  schema["allOf"] =
      Json::array({Json{{"if", {{"required", {"command"}}}},
                        {"then", {{"properties", std::move(of_programs)}}},
                        {"else", {{"properties", std::move(of_networks)}, {"allOf", schema["allOf"]}}}}});
}

}  // namespace

Json sweep_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Sweep file"},
                 {"description", "A grid of hyperparameters: one training for each combination."}};
  schema.update(object_with(properties_of(top_level_settings())));
  // What a sweep adds to the sweep.json that it leaves.
  for (const char* key : {"runs", "excluded", "file"}) {
    schema["properties"][key] = {{"description", "written by the program; ignored"}};
    schema["dependentRequired"][key] = {"provenance"};
  }
  schema["properties"]["provenance"] = {{"type", "object"},
                                        {"description", "written by the program; ignored"}};
  // Data and network are needed, be it as plain values or as axes.
  for (const char* key : {"dataset", "network"}) {
    schema["allOf"].push_back(
        any_of({Json{{"required", {key}}},
                Json{{"required", {"params"}}, {"properties", {{"params", {{"required", {key}}}}}}},
                Json{{"required", {"grids"}}}}));
  }
  Json layers = list_of(reference("layer"), 1);
  layers["description"] = "in order; input sizes are inferred";
  Json network = object_with(
      {{"name", {{"type", "string"}, {"minLength", 1}}}, {"layers", reference("layers")}}, {"layers"});
  network["patternProperties"] = {{R"(^\$)", Json::object()}};
  Json& definitions = schema["$defs"];
  definitions = {{"dataset", dataset_schema()},
                 {"network", std::move(network)},
                 {"layers", std::move(layers)},
                 {"layer", layer_schema()}};
  for (const Setting& setting : top_level_settings()) {
    const std::span<const NamedType> types = named_types(setting);
    if (!types.empty()) definitions[setting.name] = named_schema(types, setting.default_type);
  }
  add_warmup_followers(definitions["schedule"]);
  definitions.update(
      {{"stop", object_with(properties_of(stop_settings()))},
       {"search", object_with(properties_of(search_settings()))},
       {"slurm", object_with(properties_of(slurm_settings()))},
       {"slurm_tasks", object_with(properties_of(slurm_task_settings()))},
       {"log", object_with(properties_of(log_settings()))},
       {"parallel", any_of({Json{{"const", "none"}}, object_with(properties_of(parallel_settings()))})},
       {"pipeline", object_with(properties_of(pipeline_settings()))},
       {"range", range_schema()},
       {"axes", axes_schema()},
       {"conditions", {{"type", "object"}, {"minProperties", 1}}}});
  add_programs(schema);
  return schema;
}

}  // namespace sweep
