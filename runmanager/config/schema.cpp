#include "runmanager/config/schema.h"

#include "core/network/layer_spec.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/schedule.h"
#include "runmanager/config/settings.h"

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

Json list_of(Json items, std::size_t minimum = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (minimum > 0) schema["minItems"] = minimum;
  return schema;
}

Json limited(const char* type, const Setting& setting) {
  Json schema = {{"type", type}};
  if (setting.minimum > -kUnbounded)
    schema[setting.exclusive ? "exclusiveMinimum" : "minimum"] = setting.minimum;
  if (setting.maximum < kUnbounded)
    schema[setting.exclusive ? "exclusiveMaximum" : "maximum"] = setting.maximum;
  return schema;
}

Json pair_of(Json items) {
  Json schema = list_of(std::move(items), 2);
  schema["maxItems"] = 2;
  return schema;
}

// The schema of a setting's value, without its help and default.
Json value_schema(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kBoolean:
      return {{"type", "boolean"}};
    case SettingKind::kInteger:
      return limited("integer", setting);
    case SettingKind::kIntegerPair:
      return any_of({limited("integer", setting), pair_of(limited("integer", setting))});
    case SettingKind::kNumber:
      return limited("number", setting);
    case SettingKind::kNumberPair:
      return pair_of(limited("number", setting));
    case SettingKind::kNumberList:
      return list_of(limited("number", setting), 1);
    case SettingKind::kCountOrFraction:
      return any_of({Json{{"type", "integer"}, {"minimum", 0}},
                     Json{{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}}});
    case SettingKind::kChoice:
      return {{"enum", setting.choices}};
    case SettingKind::kDevice:
      return {{"type", "string"}, {"pattern", "^(auto|(cpu|cuda)(:[0-9]+)?)$"}};
    case SettingKind::kName:
      return {{"type", "string"},
              {"minLength", 1},
              {"maxLength", 100},
              {"pattern", R"(^[^\u0000-\u001f\u007f. \-/\\:*?"<>|][^\u0000-\u001f\u007f/\\:*?"<>|]*$)"}};
    case SettingKind::kPath:
      return {{"type", "string"}, {"minLength", 1}};
    case SettingKind::kDataset:
      return reference("dataset");
    case SettingKind::kNetwork:
      return any_of({Json{{"type", "string"}, {"minLength", 1}}, reference("network")});
    case SettingKind::kOptimizer:
      return reference("optimizer");
    case SettingKind::kSchedule:
      return reference("schedule");
    case SettingKind::kLoss:
      return reference("loss");
    case SettingKind::kLog:
      return reference("log");
    case SettingKind::kAxes:
      return reference("axes");
    case SettingKind::kZip:
      return list_of(list_of({{"type", "string"}}, 2));
    case SettingKind::kExclude:
      return list_of(reference("conditions"));
    case SettingKind::kWhen:
      return {{"type", "object"}, {"additionalProperties", reference("conditions")}};
    case SettingKind::kGrids:
      return list_of(reference("axes"), 1);
    case SettingKind::kAnything:
      break;
  }
  return Json::object();
}

Json setting_schema(const Setting& setting) {
  Json schema = value_schema(setting);
  if (!setting.help.empty()) schema["description"] = setting.help;
  if (!setting.default_value.is_null()) schema["default"] = setting.default_value;
  return schema;
}

Json properties_of(std::span<const Setting> settings) {
  Json properties = Json::object();
  for (const Setting& setting : settings) properties[setting.name] = setting_schema(setting);
  return properties;
}

// A layer or optimizer type as an object whose member `selector` has the type's name.
Json type_schema(const NamedType& type, const std::string& selector, Json properties,
                 bool selector_required) {
  properties[selector] = {{"const", type.name}};
  std::vector<std::string> required;
  if (selector_required) required.push_back(selector);
  for (const ArgumentType& argument : type.arguments) {
    properties[argument.name] = setting_schema(to_setting(argument));
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
  // A name alone is good for those with required arguments, too: keys such as schedule.step_size may bring
  // them.
  Json choices = Json::array({Json{{"enum", type_names(types)}}});
  for (const NamedType& type : types) {
    choices.push_back(type_schema(type, "name", Json::object(), type.name != default_type));
  }
  return {{"anyOf", std::move(choices)}, {"default", default_type}};
}

Json schedule_schema() {
  std::vector<NamedType> followers;
  for (const NamedType& type : schedule_types()) {
    if (can_follow_warmup(type.name)) followers.push_back(type);
  }
  Json then = named_schema(followers, ScheduleSpec{}.type);
  then["description"] = "what comes after the warmup, with epochs counted from there";
  Json schema = named_schema(schedule_types(), ScheduleSpec{}.type);
  for (Json& choice : schema["anyOf"]) {
    if (choice.contains("properties") && choice["properties"]["name"]["const"] == "warmup")
      choice["properties"]["then"] = then;
  }
  return schema;
}

Json dataset_schema() {
  std::vector<std::string> known(dataset_names().begin(), dataset_names().end());
  Json properties = properties_of(dataset_settings());
  const Setting mean{"mean", SettingKind::kNumberList, -1e6, 1e6},
      std{"std", SettingKind::kNumberList, 0, 1e6, true};
  properties["name"]["type"] = "string";
  properties["normalize"].update(
      object_with({{"mean", value_schema(mean)}, {"std", value_schema(std)}}, {"mean", "std"}));
  Json object = object_with(std::move(properties), {"name"});
  object["anyOf"] =
      Json::array({Json{{"required", {"path"}}}, Json{{"properties", {{"name", {{"enum", known}}}}}}});
  return any_of({Json{{"enum", known}}, std::move(object)});
}

// A list of values, or numbers that are counted out.
Json axis_schema(Json value) {
  Json list = list_of(std::move(value), 1);
  list["uniqueItems"] = true;
  return any_of({std::move(list), reference("range")});
}

Json range_schema() {
  Json forms = Json::array();
  for (const char* form : {"range", "linspace", "logspace"}) {
    Json numbers = list_of({{"type", "number"}}, 3);
    numbers["maxItems"] = 3;
    numbers["description"] =
        std::string(form) == "range" ? "first, last, step" : "first, last, count; both ends included";
    forms.push_back(object_with({{form, std::move(numbers)}}, {form}));
  }
  return {{"oneOf", std::move(forms)}};
}

Json axes_schema() {
  Json properties = Json::object();
  for (const Setting& setting : file_settings()) {
    if (setting.sweepable) properties[setting.name] = axis_schema(value_schema(setting));
  }
  for (const NamedType& type : optimizer_types()) {
    for (const ArgumentType& argument : type.arguments) {
      properties[argument.name] = axis_schema(value_schema(to_setting(argument)));
    }
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  schema["patternProperties"] = {
      {R"(^(params\.)?(dataset|network|optimizer|schedule|loss|log)\..)", axis_schema(Json::object())}};
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

Json sweep_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Sweep file"},
                 {"description", "A grid of hyperparameters: one training for each combination."}};
  schema.update(object_with(properties_of(file_settings())));
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
  schema["$defs"] = {{"dataset", dataset_schema()},
                     {"network", std::move(network)},
                     {"layers", std::move(layers)},
                     {"layer", layer_schema()},
                     {"optimizer", named_schema(optimizer_types(), OptimizerSpec{}.type)},
                     {"schedule", schedule_schema()},
                     {"loss", named_schema(loss_types(), LossSpec{}.type)},
                     {"log", object_with(properties_of(log_settings()))},
                     {"range", range_schema()},
                     {"axes", axes_schema()},
                     {"conditions", {{"type", "object"}, {"minProperties", 1}}}};
  return schema;
}

}  // namespace sweep
