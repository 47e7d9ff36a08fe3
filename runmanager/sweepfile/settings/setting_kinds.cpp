#include "runmanager/sweepfile/settings/settings.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/engine/device.h"

namespace sweep::rows {
namespace {

using Json = nlohmann::ordered_json;

Setting setting(ArgumentType type, SettingShape shape = SettingShape::kSimple) {
  return {std::move(type), shape};
}

// In bytes. File systems allow 255; this leaves room for the "-2" of a second sweep and for suffixes of
// temporary files.
constexpr std::size_t kMaxNameLength = 100;

// Whether Windows keeps the name for a device, whatever its extension.
bool is_reserved(std::string name) {
  name = lower_case(name.substr(0, name.find('.')));
  if (name == "con" || name == "prn" || name == "aux" || name == "nul") return true;
  return name.size() == 4 && (name.starts_with("com") || name.starts_with("lpt")) && name[3] >= '1' &&
         name[3] <= '9';
}

// Returns why `name` cannot be a directory, or "".
std::string name_error(const std::string& name) {
  if (name.empty()) return "want at least one character";
  if (name.size() > kMaxNameLength)
    return fmt::format("it has {} bytes, want at most {}", name.size(), kMaxNameLength);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) return "want a name without control characters";
    if (std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos) {
      return fmt::format("want a directory name without {}", c);
    }
  }
  if (printable(name) != name)
    return "want a name without control characters, marks of writing direction and characters without a "
           "width";
  if (name.front() == '.') return "want a name that does not start with a dot";
  if (name.front() == '-' || name.front() == ' ')
    return fmt::format("want a name that does not start with '{}'", name.front());
  if (name.back() == '.' || name.back() == ' ') return "want a name that does not end with a dot or a space";
  if (name.ends_with(".mean"))
    return "want a name that does not end with .mean: the means of repeats are in such directories";
  if (is_reserved(name)) return "some systems keep this name for a device, want another one";
  return "";
}

// The name of a sweep or data set has to be a directory name on every file system, and must not look like an
// option or a hidden file.
bool check_directory_name(const JsonView& node, Problems& problems) {
  if (!node->is_string()) {
    problems.add_value(node, "a string: a directory name");
    return false;
  }
  const std::string error = name_error(node.text());
  if (!error.empty()) problems.add(node, fmt::format("got {}, {}", describe(node), error));
  return error.empty();
}

constexpr const char* kDevices = "cpu, cuda, cuda:N, cpu:N (N is a device number from 0) or auto";

bool check_device_name(const JsonView& node, Problems& problems) {
  std::string nearest;
  if (node->is_string()) {
    try {
      parse_device(node.text());
      return true;
    } catch (const ConfigError&) {
      const std::string names[] = {"cpu", "cuda", "auto"};
      nearest =
          node.text() == "gpu" ? "cuda" : nearest_name(node.text().substr(0, node.text().find(':')), names);
    }
  }
  problems.add_value(node, kDevices + hint_of_values(node), nearest);
  return false;
}

constexpr int kMaxLoggedImages = 4096;

// A count, or whether there are any.
bool check_image_count(const JsonView& node, Problems& problems) {
  if (node->is_boolean()) return true;
  if (node->is_number_integer() && node.number() >= 0 && node.number() <= kMaxLoggedImages) return true;
  problems.add_value(node, fmt::format("an integer >= 0 and <= {}, true or false", kMaxLoggedImages));
  return false;
}

// true is the default, and false none.
Json complete_image_count(const Setting& row, const Given& given) {
  const Json value = complete_plain(row, given);
  if (!value.is_boolean()) return value;
  return value == true ? Json(std::get<std::int64_t>(*row.default_value)) : Json(0);
}

}  // namespace

Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kInteger,
                  .default_value = value,
                  .minimum = minimum,
                  .maximum = maximum,
                  .help = std::move(help)});
}

Setting number(std::string name, std::optional<ArgumentValue> value, bool positive, std::string help) {
  return setting({.name = std::move(name),
                  .kind = ArgumentKind::kNumber,
                  .default_value = std::move(value),
                  .exclusive = positive,
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

Setting metric_name(std::string name, std::string help) {
  Setting row = path(std::move(name), std::move(help));
  row.allowed = "the name of a metric";
  return row;
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

Setting directory_name(std::string name, std::string help) {
  constexpr const char* kUnseen =  // of printable()
      R"(\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff)";
  Setting row =
      custom(std::move(name),
             {{"type", "string"},
              {"minLength", 1},
              {"maxLength", kMaxNameLength},
              {"pattern", fmt::format(R"(^(?!.*\.mean$)[^{0}. \-/\\:*?"<>|][^{0}/\\:*?"<>|]*$)", kUnseen)}},
             std::move(help));
  row.kind = ArgumentKind::kPath;
  row.allowed = "a directory name";
  row.check = check_directory_name;
  return row;
}

Setting text(std::string name, const TextRule& rule, std::string help) {
  Json schema = {{"type", "string"}};
  if (rule.pattern == std::string_view(kNotEmpty))
    schema["minLength"] = 1;
  else if (rule.pattern != std::string_view(kAnyText))
    schema["pattern"] = rule.pattern;
  Setting row = custom(std::move(name), std::move(schema), std::move(help));
  row.kind = ArgumentKind::kPath;
  row.allowed = rule.allowed;
  row.check = [&rule](const JsonView& node, Problems& problems) {
    if (node->is_string() && rule.is_good(node.text())) return true;
    problems.add_value(node, rule.allowed);
    return false;
  };
  return row;
}

Setting device(std::string name, std::string value, std::string help) {
  Setting row = custom(std::move(name), {{"type", "string"}, {"pattern", "^(auto|(cpu|cuda)(:[0-9]+)?)$"}},
                       std::move(help));
  row.default_value = std::move(value);
  row.allowed = kDevices;
  row.check = check_device_name;
  return row;
}

Setting image_count(std::string name, std::int64_t value, std::string help) {
  Setting row =
      custom(std::move(name),
             {{"anyOf", Json::array({{{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxLoggedImages}},
                                     {{"type", "boolean"}}})}},
             std::move(help));
  row.kind = ArgumentKind::kInteger;
  row.default_value = value;
  row.check = check_image_count;
  row.complete = complete_image_count;
  return row;
}

Setting list(std::string name, std::string allowed, Setting item, Counts counts, std::string help) {
  Setting row = setting({.name = std::move(name), .help = std::move(help)}, SettingShape::kList);
  row.allowed = std::move(allowed);
  row.elements = std::make_shared<Elements>();
  row.elements->item = std::move(item);
  row.elements->counts = counts;
  return row;
}

Setting map(std::string name, std::string allowed, Setting item, Counts counts, std::string help) {
  Setting row = list(std::move(name), std::move(allowed), std::move(item), counts, std::move(help));
  row.shape = SettingShape::kMap;
  row.has_parts = true;
  return row;
}

Setting or_alone(Setting list, Setting alone, bool is_wrapped) {
  list.elements->alone = std::move(alone);
  list.elements->is_wrapped = is_wrapped;
  return list;
}

Json definition(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

Setting object(const std::string& name, std::string help, std::vector<Setting> keys) {
  Setting row = setting({.name = name, .help = std::move(help)}, SettingShape::kObject);
  row.definition = name;
  row.keys = std::make_shared<const std::vector<Setting>>(std::move(keys));
  row.has_parts = true;
  return row;
}

Setting named(const std::string& name, std::span<const NamedType> types, std::string help) {
  Setting row = setting({.name = name, .help = std::move(help)}, SettingShape::kNamed);
  row.definition = name;
  row.types = types;
  std::vector<Setting> arguments;
  for (const NamedType& type : types) {
    for (const ArgumentType& argument : type.arguments)
      if (find_setting(arguments, argument.name) == nullptr) arguments.push_back({argument});
  }
  row.keys = std::make_shared<const std::vector<Setting>>(std::move(arguments));
  row.short_key = "name";
  row.has_parts = true;
  return row;
}

Setting custom(std::string name, Json schema, std::string help) {
  Setting row = setting({.name = std::move(name), .help = std::move(help)}, SettingShape::kOwn);
  row.schema = std::move(schema);
  return row;
}

Json list_of(Json items, Counts counts) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (counts.minimum > 0) schema["minItems"] = counts.minimum;
  if (counts.maximum < Counts().maximum) schema["maxItems"] = counts.maximum;
  return schema;
}

Json object_with(Json properties, std::vector<std::string> required) {
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace sweep::rows
