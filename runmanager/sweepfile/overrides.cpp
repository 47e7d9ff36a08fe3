#include "runmanager/sweepfile/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

struct Override {
  std::string key;
  KeyPath path;
  std::shared_ptr<const JsonLocation> location;
  std::vector<JsonNode> values;  // at least one
  bool is_axis = false;          // one JSON array or range, which stands for values of an axis
};

// A list for a key that takes lists, such as kernel_size=[3,3], is one value; a list of such lists, or one
// for another key, is an axis.
bool list_is_value(const JsonNode& list, const KeyPath& path) {
  const std::optional<Setting> setting = setting_at(path);
  if (setting && !takes_list(*setting)) return false;
  return !std::all_of(list.elements.begin(), list.elements.end(),
                      [](const JsonNode& element) { return element.is(JsonKind::kArray); });
}

// Splits at commas outside of brackets and quotes, so that [3,3],[5,5] is two values.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      parts.back() += c;
      parts.back() += text[++i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == '[' || c == '{')) ++depth;
    if (!in_string && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth <= 0 && !in_string) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool wants_text(const KeyPath& path) {
  const std::optional<Setting> setting = setting_at(path);
  return setting && setting->kind == ArgumentKind::kPath;
}

// The values of "v1,v2,…". What sbatch takes is one value, commas or not: exclude=node1,node2.
std::vector<std::string> value_texts(const std::string& text, const KeyPath& path) {
  return path[0] == "slurm" && wants_text(path) ? std::vector<std::string>{text} : split_values(text);
}

JsonNode read_override_value(const std::string& text, const Override& override) {
  if (!wants_text(override.path)) {
    try {
      return parse_json(text, *override.location->source, false, override.location->path);
    } catch (const ConfigError&) {
      // Not JSON: a word such as adam or cuda:1.
    }
  }
  JsonNode node;
  node.kind = JsonKind::kString;
  node.text = text;
  node.location = override.location;
  return node;
}

std::shared_ptr<const JsonLocation> location_of(const std::string& label, const std::string& key) {
  return std::make_shared<const JsonLocation>(
      JsonLocation{std::make_shared<const std::string>(label), 0, 0, 0, key});
}

// The keys of a file with a "command" are those of its program, except what the file itself has.
std::optional<KeyPath> path_of(const JsonNode& root, const std::string& key, const JsonLocation& location,
                               bool for_axis, Problems& problems) {
  if (!is_command_file(root)) return resolve_key(key, location, for_axis, problems);
  const bool is_params = key.starts_with("params.");
  const std::string top = key.substr(0, key.find('.'));
  const Setting* const setting = is_params ? nullptr : find_setting(command_settings(), top);
  if (setting == nullptr || (top != key && !(setting->format && setting->format->has_parts)))
    return program_parameter(is_params ? key.substr(7) : key);
  if (top == key || setting->format->settings != nullptr) return key_path(key);
  return KeyPath{top, key.substr(top.size() + 1)};  // A metric's name may have dots.
}

std::optional<Override> read_override(const JsonNode& root, const std::string& text, const std::string& label,
                                      Problems& problems) {
  const std::size_t equals = text.find('=');
  Override override;
  override.location = location_of(label, "");
  if (find_bad_utf8(text) != std::string::npos) {
    problems.add(*override.location, "not UTF-8 text");
    return std::nullopt;
  }
  if (equals == std::string::npos || equals == 0) {
    problems.add(*override.location, "want KEY=VALUE or KEY=VALUE,VALUE,…");
    return std::nullopt;
  }
  override.key = text.substr(0, equals);
  override.location = location_of(label, override.key);
  std::optional<KeyPath> path = path_of(root, override.key, *override.location, false, problems);
  if (!path) return std::nullopt;
  override.path = std::move(*path);
  if (override.key.rfind("params.", 0) == 0) override.key = override.key.substr(7);
  for (const std::string& part : value_texts(text.substr(equals + 1), override.path)) {
    if (part.empty()) {
      problems.add(*override.location, "a value is missing, want KEY=VALUE or KEY=VALUE,VALUE,…");
      return std::nullopt;
    }
    override.values.push_back(read_override_value(part, override));
  }
  const JsonNode& first = override.values[0];
  const bool is_range =
      is_axis_range(first) || (first.is(JsonKind::kObject) && first.members.size() == 1 &&
                               (first.find("range") || first.find("linspace") || first.find("logspace")));
  const bool is_list = first.is(JsonKind::kArray) && !list_is_value(first, override.path);
  override.is_axis = override.values.size() == 1 && (is_list || is_range);
  return override;
}

// The value of an axis: the list or range as given, or the values as a list.
JsonNode axis_node(const Override& override) {
  if (override.is_axis) return override.values[0];
  JsonNode list;
  list.kind = JsonKind::kArray;
  list.location = override.location;
  list.elements = override.values;
  return list;
}

// Replaces the axis in one object of axes. Returns whether there was one.
bool replace_axis(const JsonNode& root, JsonNode* axes, const Override& override) {
  if (axes == nullptr || !axes->is(JsonKind::kObject)) return false;
  Problems ignored;  // Mistakes in the file's own keys are reported when its axes are read.
  for (JsonMember& member : axes->members) {
    const std::optional<KeyPath> path =
        path_of(root, "params." + member.key, *member.key_location, true, ignored);
    if (!path || *path != override.path) continue;
    member.value = axis_node(override);
    return true;
  }
  return false;
}

void add_axis(JsonNode& root, const Override& override) {
  JsonNode* params = root.find("params");
  if (params == nullptr) {
    JsonNode object;
    object.kind = JsonKind::kObject;
    object.location = override.location;
    root.members.push_back({"params", override.location, std::move(object)});
    params = &root.members.back().value;
  }
  if (params->is(JsonKind::kObject))
    params->members.push_back({override.key, override.location, axis_node(override)});
}

void apply(JsonNode& root, const Override& override, std::vector<Assignment>& plain, Problems& problems) {
  bool replaced = replace_axis(root, root.find("params"), override);
  if (JsonNode* grids = root.find("grids")) {
    for (JsonNode& grid : grids->elements) replaced = replace_axis(root, &grid, override) || replaced;
  }
  if (replaced) return;
  const bool is_parameter = is_command_file(root) && override.path == program_parameter(override.key);
  const Setting* setting = is_parameter ? nullptr : find_setting(settings_of(root), override.path[0]);
  const bool several = override.values.size() > 1 || override.is_axis;
  if (setting != nullptr && !setting->sweepable && override.path.size() > 1 && !several) {
    set_value(root, override.path, override.values[0], override.location, problems);
  } else if (setting != nullptr && !setting->sweepable) {
    const bool simple = setting->kind == ArgumentKind::kPath || setting->kind == ArgumentKind::kInteger;
    if (!simple || several) {
      problems.add(*override.location, simple ? fmt::format("want one value: {}", allowed_text(*setting))
                                              : "this cannot be given on the command line, only in the file");
      return;
    }
    set_value(root, override.path, override.values[0], override.location, problems);
  } else if (several || is_parameter) {
    add_axis(root, override);
  } else {
    plain.push_back({override.key, override.path, override.location, override.values[0]});
  }
}

constexpr std::size_t kMaxShown = 60;

using Texts = std::vector<std::pair<std::string, std::string>>;  // an override, and what messages call it

// Adds what "KEY=VALUE" of --slurm means: slurm.KEY=VALUE. A list takes a line from each word.
void add_slurm_options(std::span<const std::string> words, Texts& texts) {
  std::map<std::string, std::pair<Json, std::string>> lists;  // by key, with the first word's name
  for (const std::string& word : words) {
    const std::string label = fmt::format("--slurm {}", shown_text(word, kMaxShown));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = "slurm." + word.substr(0, equals);
    if ((key.ends_with(".setup") || key.ends_with(".options")) && find_bad_utf8(word) == std::string::npos) {
      auto& [lines, first_label] = lists.try_emplace(key, Json::array(), label).first->second;
      lines.push_back(word.substr(std::min(equals + 1, word.size())));
    } else {
      texts.emplace_back("slurm." + word, label);
    }
  }
  for (const auto& [key, list] : lists) texts.emplace_back(key + "=" + list.first.dump(), list.second);
}

}  // namespace

std::vector<Assignment> apply_overrides(JsonNode& root, std::span<const std::string> overrides,
                                        const LoadOptions& options, Problems& problems) {
  Texts texts;
  for (const std::string& text : overrides)
    texts.emplace_back(text, fmt::format("override {}", in_quotes(text)));
  for (const auto& [key, word] : {std::pair("epochs", &options.epochs), std::pair("seed", &options.seed)}) {
    if (*word)
      texts.emplace_back(fmt::format("{}={}", key, **word),
                         fmt::format("--{} {}", key, shown_text(**word, kMaxShown)));
  }
  if (options.deterministic) {
    texts.emplace_back(*options.deterministic ? "deterministic=true" : "deterministic=false",
                       *options.deterministic ? "--deterministic" : "--no-deterministic");
  }
  add_slurm_options(options.slurm, texts);
  std::vector<Assignment> plain;
  std::set<KeyPath> seen;
  for (const auto& [text, label] : texts) {
    const std::optional<Override> override = read_override(root, text, label, problems);
    if (!override) continue;
    if (!seen.insert(override->path).second) {
      problems.add(*override->location,
                   fmt::format("{} is given twice, want it once", in_quotes(override->key)));
      continue;
    }
    apply(root, *override, plain, problems);
  }
  return plain;
}

}  // namespace sweep
