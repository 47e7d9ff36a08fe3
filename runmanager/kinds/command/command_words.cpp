#include "runmanager/kinds/command/command_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

std::uint64_t seed_of(const RunConfig& config) {
  const ParamValue* const seed = find_param(config.params, "seed");
  const auto* const number = seed != nullptr ? std::get_if<std::int64_t>(seed) : nullptr;
  return (number != nullptr ? static_cast<std::uint64_t>(*number) : 0) + config.repeat;
}

// Those of the run, with the seed of its repeat.
Params told_params(const RunConfig& config) {
  Params params = config.params;
  for (auto& [key, value] : params) {
    if (key == "seed" && std::holds_alternative<std::int64_t>(value))
      value = static_cast<std::int64_t>(seed_of(config));
  }
  return params;
}

std::vector<std::string> all_params(const CommandStart& start, bool as_flags) {
  std::vector<std::string> words;
  const auto own = start.config.resolved.find("params");
  for (const auto& [key, value] : told_params(start.config)) {
    if (key == kRepeatKey && !(own && own->contains(key))) continue;
    std::string name = key;
    if (as_flags && start.config.command->dashes) std::ranges::replace(name, '_', '-');
    words.push_back(fmt::format("{}{}={}", as_flags ? "--" : "", name, param_text(value)));
  }
  return words;
}

// What replaces a substitution; nothing: the program has no such parameter.
std::optional<std::vector<std::string>> value_of(const CommandStart& start, const std::string& name) {
  const Params params = told_params(start.config);
  if (const ParamValue* const value = find_param(params, name)) return std::vector{param_text(*value)};
  if (name == "flags" || name == "overrides") return all_params(start, name == "flags");
  if (name == "params") return std::vector{(start.run_directory / kParamsFile).string()};
  if (name == "run_dir") return std::vector{start.run_directory.string()};
  if (name == "seed") return std::vector{std::to_string(seed_of(start.config))};
  return std::nullopt;
}

// A value as /bin/sh reads it, which does not have all that shell_command() makes. `quote`: that the text
// itself has around it.
std::string quoted(std::string_view value, char quote) {
  if (quote == '"') return substituted(value, {{'"', "\\\""}, {'$', "\\$"}, {'`', "\\`"}, {'\\', "\\\\"}});
  const char* const mark = quote == '\'' ? "" : "'";
  return mark + substituted(value, {{'\'', "'\\''"}}) + mark;
}

bool is_name(std::string_view text) {
  const auto good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; };
  text.remove_prefix(std::min(text.find_first_not_of('+'), text.size()));  // Hydra's: +x=1 adds the key x.
  return !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_') &&
         std::ranges::all_of(text, good);
}

// The name that begins there and that a brace ends: one of `keys`, whatever its characters, or like one of a
// variable; "" if there is none.
std::string name_at(const std::string& word, std::size_t begin, const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (word.compare(begin, key.size() + 1, key + "}") == 0) return key;
  std::string name = word.substr(begin, word.find('}', begin) - begin);
  return begin + name.size() < word.size() && is_name(name) ? name : "";
}

// Calls use(text, name) for each part of the word: text, and then the name of a substitution, or "" at the
// end. {{name}} is the text {name}; braces around anything else are text, and so is ${name}, a shell's own.
void for_each_part(const std::string& word, const std::vector<std::string>& keys,
                   const std::function<void(std::string, std::string)>& use) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool is_doubled = word.compare(i, 2, "{{") == 0;
    const std::size_t begin = i + (is_doubled ? 2 : 1);
    const bool is_brace = word[i] == '{' && (i == 0 || word[i - 1] != '$');
    const std::string name = is_brace ? name_at(word, begin, keys) : "";
    const std::size_t end = begin + name.size();
    if (name.empty() || (is_doubled && word.compare(end, 2, "}}") != 0)) {
      text += word[i];
      continue;
    }
    i = end;
    if (is_doubled) {
      text += "{" + name + "}";
      ++i;
    } else {
      use(std::move(text), name);
      text.clear();
    }
  }
  use(std::move(text), "");
}

// What replaces the text for /bin/sh, or a single word of a command, which no shell reads. Leaves out words
// with a parameter that the run lacks: those that the shell would take for one before it replaces anything.
// Nothing if that leaves out the single word.
std::optional<std::string> expanded(const std::string& word, const CommandStart& start) {
  const bool for_shell = start.config.command->shell;
  std::vector<std::string> keys;
  for (const auto& [key, value] : start.config.params) keys.push_back(key);
  constexpr std::string_view kBetweenWords = " \t\n;&|()<>";
  std::string text;
  std::size_t begin = 0;  // of its last word
  std::string open;       // quotes, and the parentheses and backquotes of commands, that are not closed
  bool is_escaped = false, after_dollar = false, drops_word = false;
  const auto end_word = [&] {
    if (std::exchange(drops_word, false)) text.resize(begin);
  };
  const auto add = [&](char c) {
    const char around = open.empty() ? 0 : open.back();
    const bool is_quoted = around == '\'' || around == '"', is_command = c == '(' && after_dollar;
    const bool is_between = !is_quoted && !is_escaped && open.find('"') == std::string::npos &&
                            kBetweenWords.find(c) != std::string_view::npos;
    if (is_between) end_word();
    text += c;
    if (is_between) begin = text.size();
    after_dollar = c == '$' && !is_escaped;
    if (std::exchange(is_escaped, false)) return;
    if (c == '\\' && around != '\'')
      is_escaped = true;
    else if (c == (around == '(' ? ')' : around))
      open.pop_back();
    else if (around != '\'' && (c == '`' || (is_quoted ? is_command : c == '\'' || c == '"' || c == '(')))
      open += c;
  };
  for_each_part(word, keys, [&](const std::string& before, const std::string& name) {
    if (for_shell) std::ranges::for_each(before, add);
    if (!for_shell) text += before;
    const auto value = name.empty() ? std::vector<std::string>() : value_of(start, name);
    drops_word = drops_word || !value;
    const char* separator = "";
    for (const std::string& part : value.value_or(std::vector<std::string>())) {
      after_dollar = false;  // A value's own is none.
      text += std::exchange(separator, " ");
      text += for_shell ? quoted(part, open.empty() ? 0 : open.back()) : part;
    }
  });
  if (drops_word && !for_shell) return std::nullopt;
  end_word();
  return text;
}

}  // namespace

std::vector<std::string> command_words(const CommandStart& start) {
  const CommandSpec& spec = *start.config.command;
  if (spec.shell) return {"/bin/sh", "-c", *expanded(spec.words[0], start)};
  std::vector<std::string> words;
  for (const std::string& word : spec.words) {
    if (word == "{flags}" || word == "{overrides}")  // alone they are several words
      std::ranges::copy(*value_of(start, word.substr(1, word.size() - 2)), std::back_inserter(words));
    else if (auto text = expanded(word, start))
      words.push_back(*std::move(text));
  }
  return words;
}

std::vector<std::string> command_environment(const CommandStart& start) {
  std::map<std::string, std::string> all = {
      {"SWEEP_RUN_DIR", start.run_directory.string()},
      {"SWEEP_PARAMS", (start.run_directory / kParamsFile).string()},
      {"SWEEP_SEED", std::to_string(seed_of(start.config))},
      {"SWEEP_ATTEMPT", std::to_string(start.attempt)},
      {"SWEEP_CHECKPOINT_DIR", (start.run_directory / kCheckpointFolder).string()},
      {"SWEEP_METRICS", (start.run_directory / kMetricsFile).string()}};
  if (param_text(start.config.params, "device") == "cpu") all["CUDA_VISIBLE_DEVICES"] = "";
  if (!start.gpus.empty()) all["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(start.gpus, ","));
  if (continues(start.config))
    all["SWEEP_RESUME_FROM"] = (start.run_directory / kStartFolder / kCheckpointFolder).string();
  if (start.until > 0) all["SWEEP_UNTIL"] = std::to_string(start.until);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const std::size_t end = text.find('='); end != std::string_view::npos)
      all.emplace(text.substr(0, end), text.substr(end + 1));
  }
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    all.emplace(name, std::to_string(std::max(1, start.threads)));
  // Output that a program keeps for itself would come too late for metrics, and get lost with it.
  all.emplace("PYTHONUNBUFFERED", "1");
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(name + "=" + value);
  return environment;
}

std::string params_text(const RunConfig& config) {
  auto json = nlohmann::ordered_json::object();
  const auto given = config.resolved.find("params");
  for (const auto& [key, value] : told_params(config)) {
    // Lists are text there, and so are numbers if the key also has other values.
    const bool is_text = std::holds_alternative<std::string>(value) && given && given->contains(key);
    json[key] = is_text ? given->at(key) : to_json(value);
  }
  return json_text(json);
}

void check_substitutions(const CommandSpec& spec, const std::vector<std::string>& keys) {
  std::vector<std::string> names = keys;
  for (const char* own : {"flags", "overrides", "params", "run_dir", "seed"})
    if (std::ranges::find(keys, own) == keys.end()) names.emplace_back(own);
  for (const std::string& word : spec.words) {
    for_each_part(word, keys, [&](const std::string&, const std::string& name) {
      if (name.empty() || std::ranges::find(names, name) != names.end()) return;
      throw ConfigError(
          fmt::format("command: {{{}}} is no parameter, want one of: {}; {{{{{}}}}} means the text "
                      "itself{}",
                      name, fmt::join(names, ", "), name, suggestion(name, names)));
    });
  }
}

bool has_substitutions(const CommandSpec& spec, const std::vector<std::string>& keys) {
  bool has = false;
  for (const std::string& word : spec.words)
    for_each_part(word, keys, [&has](const std::string&, const std::string& name) { has |= !name.empty(); });
  return has;
}

}  // namespace sweep
