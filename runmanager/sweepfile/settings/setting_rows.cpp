#include "runmanager/sweepfile/settings/setting_rows.h"

#include <fmt/format.h>
#include <utility>

#include "runmanager/sweepfile/text_rules.h"

namespace sweep::rows {
namespace {

using Json = nlohmann::ordered_json;

// Not as a nested initializer: where memory runs out in the middle of one, GCC 12 destroys the parts that it
// has twice.
Setting setting(ArgumentType type, std::optional<SettingFormat> format = std::nullopt,
                bool sweepable = true) {
  Setting result;
  static_cast<ArgumentType&>(result) = std::move(type);
  result.format = std::move(format);
  result.sweepable = sweepable;
  return result;
}

// One name becomes a list of one.
template <auto kCheck>
Json complete_names(const Given& given) {
  if (given.value == nullptr || !kCheck(*given.value, given.problems)) return nullptr;
  return given.value->is(JsonKind::kString) ? Json::array({given.value->text}) : to_json(*given.value);
}

// true is the default, and false none.
Json complete_image_count(const Given& given) {
  const Setting& plain = *find_setting(log_settings(), "images");
  const Json value = complete_plain(plain, given);
  if (!value.is_boolean()) return value;
  return value == true ? Json(std::get<std::int64_t>(*plain.default_value)) : Json(0);
}

}  // namespace

Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help,
                bool sweepable) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kInteger,
                  .default_value = value,
                  .minimum = minimum,
                  .maximum = maximum,
                  .help = std::move(help)},
                 std::nullopt, sweepable);
}

Setting number(std::string name, std::optional<ArgumentValue> value, bool positive, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumber,
                  .default_value = std::move(value),
                  .exclusive = positive,
                  .help = std::move(help)});
}

Setting any_number(std::string name, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumber,
                  .minimum = -kUnbounded,
                  .optional = true,
                  .help = std::move(help)});
}

Setting boolean(std::string name, bool value, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kBoolean,
                  .default_value = value,
                  .help = std::move(help)});
}

Setting choice(std::string name, std::vector<std::string> choices, std::optional<std::string> value,
               std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kChoice,
                  .default_value = std::move(value),
                  .help = std::move(help),
                  .choices = std::move(choices)});
}

Setting path(std::string name, std::string help) {
  return setting({.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)});
}

Setting channels(std::string name, double minimum, bool positive) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumberList,
                  .minimum = minimum,
                  .maximum = 1e6,
                  .exclusive = positive});
}

Setting count_or_fraction(std::string name, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kCountOrFraction,
                  .default_value = std::int64_t{0},
                  .maximum = kMaxCount,
                  .help = std::move(help)});
}

Setting extents(std::string name, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kIntegerPair,
                  .minimum = 1,
                  .maximum = kMaxImageExtent,
                  .help = std::move(help)});
}

Setting directory_name(std::string name, std::string help, bool sweepable) {
  constexpr const char* kUnseen =  // of printable()
      R"(\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff)";
  const std::string pattern = fmt::format(R"(^(?!.*\.mean$)[^{0}. \-/\\:*?"<>|][^{0}/\\:*?"<>|]*$)", kUnseen);
  const Json schema = {
      {"type", "string"}, {"minLength", 1}, {"maxLength", kMaxNameLength}, {"pattern", pattern}};
  return setting(
      {.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)},
      SettingFormat{.allowed = "a directory name", .schema = schema, .check = check_directory_name},
      sweepable);
}

Setting column(std::string name, std::string help) {
  return setting({.name = std::move(name), .kind = ArgumentKind::kPath, .help = std::move(help)},
                 SettingFormat{.allowed = "the name of a column or an array",
                               .schema = {{"type", "string"}, {"minLength", 1}},
                               .check = check_column_name});
}

Setting ignored_columns(std::string name, std::string help) {
  const Json list = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
  return setting({.name = std::move(name), .help = std::move(help)},
                 SettingFormat{.allowed = "the name of a column, or a list of such names",
                               .schema = {{"anyOf", Json::array({{{"type", "string"}}, list})}},
                               .check = check_ignored_columns})
      .completed_by(complete_names<check_ignored_columns>);
}

Setting columns(std::string name, std::string help) {
  const Json text = {{"type", "string"}, {"minLength", 1}};
  const Json list = {{"type", "array"}, {"items", text}, {"minItems", 1}};
  return setting({.name = std::move(name), .help = std::move(help)},
                 SettingFormat{.allowed = "the name of a column, or a list of such names",
                               .schema = {{"anyOf", Json::array({text, list})}},
                               .check = check_column_names})
      .completed_by(complete_names<check_column_names>);
}

Setting device(std::string name, std::string value, std::string help) {
  const Json schema = {{"type", "string"}, {"pattern", "^(auto|(cpu|cuda)(:[0-9]+)?)$"}};
  return setting({.name = std::move(name), .default_value = std::move(value), .help = std::move(help)},
                 SettingFormat{.allowed = kAllowedDevices, .schema = schema, .check = check_device_name});
}

Setting image_count(std::string name, std::int64_t value, std::string help) {
  const Json count = {{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxLoggedImages}};
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kInteger,
                  .default_value = value,
                  .help = std::move(help)},
                 SettingFormat{.allowed = "",
                               .schema = {{"anyOf", Json::array({count, Json{{"type", "boolean"}}})}},
                               .check = check_image_count})
      .completed_by(complete_image_count);
}

Json definition(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

Setting custom(std::string name, std::string help, bool sweepable, SettingFormat format) {
  return setting({.name = std::move(name), .help = std::move(help)}, std::move(format), sweepable);
}

Setting named(const std::string& name, std::span<const NamedType> (*types)(), std::string default_type,
              std::string help) {
  return custom(name, std::move(help), true,
                {.schema = definition(name),
                 .has_parts = true,
                 .short_form = true,
                 .types = types,
                 .default_type = std::move(default_type)});
}

Json list_of(Json items, std::size_t minimum) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (minimum > 0) schema["minItems"] = minimum;
  return schema;
}

}  // namespace sweep::rows
