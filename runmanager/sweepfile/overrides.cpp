// What the command line changes in a sweep file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/sweepfile/sweep_file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The value is the one, or a list of several.
struct Override : Assignment {
  std::string key;
  bool is_axis = false;  // of several values, or of a list or a range of JSON
};

// Whether the path is that of a program's parameter: no table has a row of it.
bool is_parameter(const KeyPath& path) { return path == program_parameter(path.back()); }

// Whether the file's values of a program's parameter have lists.
bool parameter_has_lists(const JsonView& root, const std::string& key) {
  const JsonView params = root.find("params"), values = params ? params.find(key) : JsonView();
  return values && values->is_array() && std::ranges::any_of(*values, &Json::is_array);
}

// A list for a key that takes lists, such as kernel_size=[3,3], is one value; a list of such lists, or one
// for another key, is an axis.
bool list_is_value(const JsonView& root, const Json& list, const KeyPath& path) {
  if (std::ranges::all_of(list, &Json::is_array)) return false;
  if (is_parameter(path)) return parameter_has_lists(root, path.back());
  const std::optional<Setting> setting = setting_at(path, settings_of(root));
  return !setting || takes_list(*setting);
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

// Whether the key takes `value` as a text, whatever it reads like.
bool is_text(const JsonView& root, const KeyPath& path, const std::string& value) {
  const std::optional<Setting> setting = setting_at(path, settings_of(root));
  if (!setting || !setting->elements) return setting && setting->kind == ArgumentKind::kPath;
  const auto& alone = setting->elements->alone;
  return alone && alone->kind == ArgumentKind::kPath && !value.starts_with('[');
}

// Whether the value is one text, commas or not, as it cannot be swept: a sweep's name, a program's directory,
// metrics and regular expressions, and what sbatch takes, such as exclude=node1,node2.
bool is_one_text(const JsonView& root, const KeyPath& path, const std::string& value) {
  const Setting* const top = find_setting(settings_of(root), path[0]);
  return top != nullptr && !top->sweepable && is_text(root, path, value);
}

JsonDocument read_override_value(const JsonView& root, const std::string& text, const Override& override) {
  if (!is_text(root, override.path, text)) {
    try {
      return parse_json(text, override.place.source->name, false, override.place.path);
    } catch (const ConfigError&) {
      // Not JSON: a word such as adam or cuda:1.
    }
  }
  return {text, override.place};
}

// The keys of a file with a "command" are those of its program, except what the file itself has.
std::optional<KeyPath> path_of(const JsonView& root, const std::string& key, const JsonPlace& place,
                               KeyUse use, Problems& problems) {
  if (!is_command_file(root)) return resolve_key(key, place, use, problems);
  const bool is_params = key.starts_with("params.");
  const std::string top = key.substr(0, key.find('.'));
  const Setting* const setting = is_params ? nullptr : find_setting(command_settings(), top);
  if (setting == nullptr || (top != key && !setting->has_parts))
    return program_parameter(is_params ? key.substr(7) : key);
  // Keys of a map may have any character.
  if (setting->shape == SettingShape::kMap && top != key) return KeyPath{top, key.substr(top.size() + 1)};
  return key_path(key);
}

// What is wrong with "KEY=VALUE,…", or "".
std::string form_error(const std::string& text) {
  if (find_bad_utf8(text) != std::string::npos) return "not UTF-8 text";
  return text.find('=') == std::string::npos || text.starts_with('=') ? "want KEY=VALUE or KEY=VALUE,VALUE,…"
                                                                      : "";
}

std::optional<Override> read_override(const JsonView& root, const std::string& text, const std::string& label,
                                      Problems& problems) {
  const std::string key = text.substr(0, text.find('='));
  const auto source = std::make_shared<const JsonSource>(JsonSource{.name = label});
  if (const std::string error = form_error(text); !error.empty()) {
    problems.add(JsonPlace{source}, error);
    return std::nullopt;
  }
  const JsonPlace place{.source = source, .path = {key}};
  const std::optional<KeyPath> path = path_of(root, key, place, KeyUse::kValue, problems);
  if (!path) return std::nullopt;
  Override override{{*path, place, {Json::array(), place.whole()}},
                    key.starts_with("params.") ? key.substr(7) : key};
  const std::string value_text = text.substr(key.size() + 1);
  const std::vector<std::string> parts =
      is_one_text(root, *path, value_text) ? std::vector<std::string>{value_text} : split_values(value_text);
  for (const std::string& part : parts) {
    if (part.empty()) {
      problems.add(place, "a value is missing, want KEY=VALUE or KEY=VALUE,VALUE,…");
      return std::nullopt;
    }
    JsonDocument value = read_override_value(root, part, override);
    if (parts.size() > 1)
      override.value.json.push_back(std::move(value.json));
    else
      override.value = std::move(value);
  }
  const JsonView first(override.value);
  const bool is_list = first->is_array() && !list_is_value(root, *first, override.path);
  override.is_axis = parts.size() > 1 || is_list || has_axis_form(first);
  return override;
}

// The values of an axis: the list or range as given, or the one value as a list.
JsonDocument axis_of(const Override& override) {
  if (override.is_axis) return override.value;
  return {Json::array({override.value.json}), override.place.whole()};
}

// Replaces the values of the axis wherever the file has it. Returns whether it does.
bool replace_axis(JsonDocument& root, const Override& override) {
  bool replaced = false;
  Problems ignored;  // Mistakes in the file's own keys are reported when its axes are read.
  each_axes(root, [&](Json& axes, const KeyPath& at) {
    for (auto& [key, values] : axes.items()) {
      if (path_of(root, "params." + key, override.place, KeyUse::kAxis, ignored) != override.path) continue;
      KeyPath path = at;
      path.push_back(key);
      root.set(values, path, axis_of(override));
      replaced = true;
      return;
    }
  });
  return replaced;
}

void add_axis(JsonDocument& root, const Override& override) {
  const auto [params, is_new] = root.json.emplace("params", Json::object());
  if (is_new) root.set_place({"params"}, override.place);
  if (params->is_object()) root.set((*params)[override.key], {"params", override.key}, axis_of(override));
}

// Whether a run may have the value without the axis: by "when", or as only another of "grids" has the axis.
bool has_plain_value(const JsonDocument& root, const KeyPath& path) {
  const bool may_lack_axis = root.json.contains("when") || root.json.contains("grids");
  return may_lack_axis && !is_command_file(root) && (path.size() == 1 || find_path(root, path));
}

void apply(JsonDocument& root, const Override& override, std::vector<Assignment>& plain, Problems& problems) {
  if (replace_axis(root, override) && (override.is_axis || !has_plain_value(root, override.path))) return;
  const Setting* setting = find_setting(settings_of(root), override.path[0]);
  if (setting == nullptr || setting->sweepable) {
    if (override.is_axis || setting == nullptr) return add_axis(root, override);
    return plain.push_back(override);
  }
  // Also a value alone in the place of an object, as the seconds of "timeout".
  const bool simple = setting->shape == SettingShape::kSimple || setting->kind == ArgumentKind::kPath ||
                      takes_list(*setting) || !setting->short_key.empty();
  if (!override.is_axis && (simple || override.path.size() > 1)) {
    set_value(root, override.path, override.value, override.place, problems);
    return;
  }
  const std::string& key = override.path[0];
  std::string problem = "this cannot be given on the command line, only in the file";
  if (simple)
    problem = fmt::format("want one value: {}", allowed_text(*setting));
  else if (override.path.size() > 1)
    problem = fmt::format("{} cannot be swept, want one value", in_quotes(key));
  else if (setting->has_parts && override.path.size() == 1)
    problem = fmt::format("want a value of one of its keys: {}.KEY=VALUE", key);
  if (is_command_file(root)) problem += fmt::format("; a parameter of this name is params.{}", key);
  problems.add(override.place, problem);
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

std::vector<Assignment> apply_overrides(JsonDocument& root, std::span<const std::string> overrides,
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
    if (label.starts_with("--") && is_parameter(override->path) && override->key != "seed") {
      problems.add(JsonPlace{override->place.source},
                   fmt::format("is for networks, want {} for a parameter of the program", text));
      continue;
    }
    if (!seen.insert(override->path).second) {
      problems.add(override->place, fmt::format("{} is given twice, want it once", in_quotes(override->key)));
      continue;
    }
    apply(root, *override, plain, problems);
  }
  return plain;
}

}  // namespace sweep
