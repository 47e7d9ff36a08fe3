// The JSON schema of sweep files, made of the tables that the program itself checks with.
#include <utility>

#include "core/network/layers.h"
#include "core/network/schedule.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/sweepfile/sweep_file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

Json any_of(std::initializer_list<Json> choices) { return {{"anyOf", std::vector<Json>(choices)}}; }

using rows::definition, rows::list_of, rows::object_with;

Json limited(const char* type, const ArgumentType& value) {
  Json schema = {{"type", type}};
  if (value.minimum > -kUnbounded)
    schema[value.excludes_minimum() ? "exclusiveMinimum" : "minimum"] = value.minimum;
  if (value.maximum < kUnbounded) schema[value.exclusive ? "exclusiveMaximum" : "maximum"] = value.maximum;
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
      return any_of(
          {limited("integer", type), list_of(limited("integer", type), {.minimum = 2, .maximum = 2})});
    case ArgumentKind::kNumber:
      return limited("number", type);
    case ArgumentKind::kNumberPair:
      return list_of(limited("number", type), {.minimum = 2, .maximum = 2});
    case ArgumentKind::kNumberList:
      return list_of(limited("number", type), {.minimum = 1});
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

// Adds help and default to the schema of a value.
Json described(Json schema, const ArgumentType& type) {
  if (!type.help.empty()) schema["description"] = type.help;
  if (type.default_value)
    std::visit([&](const auto& value) { schema["default"] = value; }, *type.default_value);
  return schema;
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
      schema["properties"]["layers"] = definition("layers");
      schema["required"].push_back("layers");
    }
    if (type.name == "residual") {
      schema["properties"]["shortcut"] = list_of(definition("layer"));
      schema["properties"]["shortcut"]["description"] =
          "added to the layers' output; default: the input itself";
    }
    choices.push_back(std::move(schema));
  }
  return {{"oneOf", std::move(choices)}};
}

// One of `types` by its name, or as an object; without a name its arguments are those of the first one.
Json named_schema(std::span<const NamedType> types) {
  // A name alone is also valid for types with required arguments: keys such as schedule.step_size may give
  // them.
  Json choices = Json::array({Json{{"enum", type_names(types)}}});
  for (const NamedType& type : types)
    choices.push_back(type_schema(type, "name", Json::object(), &type != &types.front()));
  return {{"anyOf", std::move(choices)}, {"default", types.front().name}};
}

// Adds what may come after a warmup to the schema of "schedule".
void add_warmup_followers(Json& schema) {
  Json then = named_schema(schedule_types_after_warmup());
  then.erase("default");
  then["description"] =
      "what comes after the warmup, with epochs counted from there; left out: lr stays lr times end_factor";
  for (Json& choice : schema["anyOf"]) {
    if (choice.contains("properties") && choice["properties"]["name"]["const"] == "warmup")
      choice["properties"]["then"] = then;
  }
}

// A list of values, numbers that are counted out, or a range that a search draws from.
Json axis_schema(Json value) {
  Json list = list_of(std::move(value), {.minimum = 1});
  list["uniqueItems"] = true;
  return any_of({std::move(list), definition("range")});
}

Json range_schema() {
  Json forms = Json::array();
  for (const AxisForm& form : axis_forms()) {
    const std::size_t count = form.drawn ? 2 : 3;
    Json numbers =
        list_of({{"type", form.drawn && has_integers(*form.drawn) ? "integer" : "number"}}, {count, count});
    numbers["description"] = std::string(form.numbers) + (form.drawn            ? "; for a search"
                                                          : form.key == "range" ? ""
                                                                                : "; both ends included");
    const std::string key(form.key);
    forms.push_back(object_with({{key, std::move(numbers)}}, {key}));
  }
  return {{"oneOf", std::move(forms)}};
}

Json properties_of(std::span<const Setting> settings, Json& definitions);

// The schema of a value. The objects of the tables become definitions once one refers to them.
Json value_schema(const Setting& setting, Json& definitions) {
  if (setting.shape == SettingShape::kSimple) return value_schema(setting);
  if (setting.shape == SettingShape::kOwn) return setting.schema.is_null() ? Json::object() : setting.schema;
  if (setting.elements) {
    const Elements& elements = *setting.elements;
    Json all = list_of(value_schema(elements.item, definitions), elements.counts);
    if (setting.shape == SettingShape::kMap) {
      all = {{"type", "object"}, {"additionalProperties", std::move(all["items"])}};
      if (elements.counts.minimum > 0) all["minProperties"] = elements.counts.minimum;
    }
    return elements.alone ? any_of({value_schema(*elements.alone, definitions), std::move(all)}) : all;
  }
  const std::string& name = setting.definition;
  if (!definitions.contains(name) && setting.shape == SettingShape::kNamed) {
    definitions[name] = named_schema(setting.types);
  } else if (!definitions.contains(name)) {
    Json object = object_with(properties_of(setting.table(), definitions));
    definitions[name] = setting.schema.is_null() ? object : any_of({setting.schema, std::move(object)});
  }
  return definition(name);
}

Json properties_of(std::span<const Setting> settings, Json& definitions) {
  Json properties = Json::object();
  for (const Setting& setting : settings)
    properties[setting.name] = described(value_schema(setting, definitions), setting);
  return properties;
}

// Adds what the table of "dataset" does not say: that there has to be a path, or a name that is known.
void complete_dataset(Json& definitions) {
  definitions["normalize"]["anyOf"][1]["required"] = {"mean", "std"};
  Json& object = definitions["dataset"]["anyOf"][1];
  object["anyOf"] = Json::array(
      {Json{{"required", {"path"}}},
       Json{{"required", {"name"}}, {"properties", {{"name", definitions["dataset"]["anyOf"][0]}}}}});
}

Json axes_schema(Json& definitions) {
  Json properties = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (setting.sweepable) properties[setting.name] = axis_schema(value_schema(setting, definitions));
  }
  for (const Setting& argument : find_setting(top_level_settings(), "optimizer")->table())
    properties[argument.name] = axis_schema(value_schema(argument, definitions));
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
void add_programs(Json& schema, Json& definitions) {
  Json& properties = schema["properties"];
  definitions["program_axes"] = {{"type", "object"}, {"additionalProperties", axis_schema(Json::object())}};
  const Json of_command = properties_of(command_settings(), definitions);
  Json of_networks = Json::object(), of_programs = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (!of_command.contains(setting.name)) of_programs[setting.name] = false;
  }
  for (const auto& [key, program] : of_command.items()) {
    Json& property = properties[key];
    if (find_setting(top_level_settings(), key) == nullptr) {
      property = program;
      if (key != "command") schema["dependentRequired"][key] = {"command"};
    } else if (property != program) {
      of_networks[key] = std::exchange(property, any_of({property, program}));
      of_programs[key] = program;
      property["description"] = program["description"];
    }
  }
  schema["allOf"] =
      Json::array({Json{{"if", {{"required", {"command"}}}},
                        {"then", {{"properties", std::move(of_programs)}}},
                        {"else", {{"properties", std::move(of_networks)}, {"allOf", schema["allOf"]}}}}});
}

}  // namespace

Json sweep_schema() {
  Json definitions = Json::object();
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Sweep file"},
                 {"description", "A grid of hyperparameters: one training for each combination."}};
  schema.update(object_with(properties_of(top_level_settings(), definitions)));
  // What a sweep adds to the sweep.json that it leaves.
  for (const char* key : {"runs", "excluded", "file", "learned"}) {
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
  Json layers = list_of(definition("layer"), {.minimum = 1});
  layers["description"] = "in order; input sizes are inferred";
  Json network = object_with(
      {{"name", {{"type", "string"}, {"minLength", 1}}}, {"layers", definition("layers")}}, {"layers"});
  network["patternProperties"] = {{R"(^\$)", Json::object()}};
  complete_dataset(definitions);
  add_warmup_followers(definitions["schedule"]);
  definitions.update({{"network", std::move(network)},
                      {"layers", std::move(layers)},
                      {"layer", layer_schema()},
                      {"range", range_schema()},
                      {"axes", axes_schema(definitions)},
                      {"conditions", {{"type", "object"}, {"minProperties", 1}}}});
  add_programs(schema, definitions);
  schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace sweep
