#include "runmanager/config/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/base/text.h"
#include "core/network/arguments.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxValueLength = 48;
constexpr std::size_t kMaxNameLength = 200;  // File systems allow 255 bytes; encrypting ones less.

bool is_safe(char c) {
  if (static_cast<unsigned char>(c) >= 0x80) return false;
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("._-+").find(c) != std::string_view::npos;
}

// A JSON value as a few words: "32x32" for [32, 32], "random_crop4+horizontal_flip" for
// [{"random_crop": {"padding": 4}}, "horizontal_flip"]. Different values may have the same words.
std::string words_of(const nlohmann::ordered_json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null() || json.empty()) return "none";
  if (!json.is_structured()) return json.dump();
  const bool is_size =
      json.is_array() && json.size() == 2 && json[0].is_number_integer() && json[1].is_number_integer();
  const bool is_number = json.is_object() && json.size() == 1 && json.front().is_number();
  std::string words;
  for (const auto& [key, value] : json.items()) {
    if (!words.empty()) words += is_size ? "x" : json.is_array() ? "+" : "-";
    const std::string text = words_of(value);
    const bool is_word = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
    if (json.is_object() && !is_number) words += key + (is_word ? "." : "");
    words += text;
  }
  return words;
}

std::string value_text(const ParamValue& value) {
  std::string text = param_text(value);
  if (!is_json_text(value)) return text;
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? text : words_of(json);
}

// Also escapes '~', '=' and ',', so that no value can look like another run's name.
std::string escaped(std::string_view text) {
  if (!text.empty() && text.find('.') == std::string_view::npos &&
      std::all_of(text.begin(), text.end(), is_safe))
    return std::string(text);
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool edge_dot = text[i] == '.' && (i == 0 || text[i - 1] == '.' || i + 1 == text.size());
    if (is_safe(text[i]) && !edge_dot) {
      safe += text[i];
    } else {
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(text[i]));
    }
  }
  return safe;
}

// `text` cut to `longest` characters including the hash of the whole. Never cuts inside a %XX.
std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  const std::string end = "~" + hash_of(text);
  std::size_t keep = longest - end.size();
  if (keep >= 1 && text[keep - 1] == '%') keep -= 1;
  if (keep >= 2 && text[keep - 2] == '%') keep -= 2;
  return text.substr(0, keep) + end;
}

// The keys of the first run's params that have the same value in all runs.
std::set<std::string_view> constant_keys(const std::vector<Params>& runs) {
  std::set<std::string_view> keys;
  if (runs.empty()) return keys;
  const Params& first = runs.front();
  for (std::size_t p = 0; p < first.size(); ++p) {
    const auto has_it = [&](const Params& params) {
      // Mostly all runs have the same keys.
      return (p < params.size() && params[p] == first[p]) ||
             std::find(params.begin(), params.end(), first[p]) != params.end();
    };
    if (std::all_of(runs.begin(), runs.end(), has_it)) keys.insert(first[p].first);
  }
  return keys;
}

std::string name_without(const Params& params, const std::set<std::string_view>& left_out) {
  std::string name;
  for (const auto& [key, value] : params) {
    if (left_out.contains(key)) continue;
    if (!name.empty()) name += ',';
    name += escaped(key);
    name += '=';
    name += shortened(escaped(value_text(value)), kMaxValueLength);
  }
  return name.empty() ? "run" : shortened(name, kMaxNameLength);
}

}  // namespace

const ParamValue* find_param(const Params& params, std::string_view key) {
  const auto found = std::ranges::find(params, key, &Params::value_type::first);
  return found == params.end() ? nullptr : &found->second;
}

std::optional<double> param_number(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  const double* number = std::get_if<double>(&value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string param_text(const ParamValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const double* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<std::string>(value);
}

bool is_json_text(const ParamValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr && (text->starts_with('[') || text->starts_with('{'));
}

std::string param_text(const Params& params, std::string_view key) {
  const ParamValue* value = find_param(params, key);
  return value != nullptr ? param_text(*value) : "";
}

void unify_types(const std::vector<Params*>& runs) {
  const std::set<std::size_t> numbers = {ParamValue(std::int64_t{}).index(), ParamValue(0.0).index()};
  std::map<std::string_view, std::set<std::size_t>> types;  // that the values of a key have
  for (const Params* params : runs) {
    for (const auto& [key, value] : *params) types[key].insert(value.index());
  }
  for (Params* params : runs) {
    for (auto& [key, value] : *params) {
      const std::set<std::size_t>& known = types.at(key);
      if (known.size() == 1) continue;
      const auto* const integer = std::get_if<std::int64_t>(&value);
      if (known != numbers)
        value = param_text(value);
      else if (integer != nullptr)
        value = static_cast<double>(*integer);
    }
  }
}

std::string run_name(const Params& params) { return name_without(params, {}); }

std::vector<std::string> run_names(const std::vector<Params>& runs) {
  std::set<std::string_view> left_out = constant_keys(runs);
  const auto is_shown = [&](const auto& param) { return !left_out.contains(param.first); };
  if (std::ranges::none_of(runs, [&](const Params& one) { return std::ranges::any_of(one, is_shown); }))
    left_out.clear();
  std::vector<std::string> names;
  names.reserve(runs.size());
  std::unordered_map<std::string, int> uses;
  uses.reserve(runs.size());
  for (const Params& params : runs) {
    names.push_back(name_without(params, left_out));
    ++uses[lower_case(names.back())];
  }
  // All that share a name get a hash of their values, so that a name does not depend on the order of the
  // runs.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (uses[lower_case(names[i])] < 2) continue;
    std::string whole;
    for (const auto& [key, value] : runs[i]) whole += fmt::format("{}={}\n", key, param_text(value));
    names[i] += "~" + hash_of(whole);
  }
  std::unordered_set<std::string> taken;
  taken.reserve(names.size());
  for (std::string& name : names) {  // Values that print alike but differ in type: "1" and 1.
    const std::string stem = name;
    for (int n = 2; !taken.insert(lower_case(name)).second; ++n) name = fmt::format("{}~{}", stem, n);
  }
  return names;
}

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

}  // namespace sweep
