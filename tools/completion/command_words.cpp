#include "tools/completion/command_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "runmanager/records/run_files.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/terminal/results_table.h"
#include "tools/command_line.h"
#include "tools/completion/sweep_keys.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// What stands on the line before the word at the cursor.
struct Line {
  const CLI::App* command = nullptr;
  std::vector<std::string> positionals;
  const CLI::Option* option = nullptr;  // waits for its value
};

const CLI::Option* find_option(const CLI::App& command, const std::string& word) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = word.substr(0, word.find('='));
    for (const std::string& known : option->get_lnames()) {
      if ("--" + known == name) return option;
    }
    for (const std::string& known : option->get_snames()) {
      if ("-" + known == name) return option;
    }
  }
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// `words` up to the cursor. A first word that is no command is a sweep file.
Line line_of(const CLI::App& app, std::vector<std::string> words) {
  Line line;
  words.pop_back();
  std::size_t first = 0;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!words.empty() && command->get_name() == words[0]) {
      line.command = command;
      first = 1;
    }
  }
  if (line.command == nullptr) line.command = app.get_subcommand(kDefaultCommand);
  for (std::size_t i = first; i < words.size(); ++i) {
    if (line.option != nullptr) {
      line.option = nullptr;
    } else if (words[i].starts_with("-") && words[i].size() > 1) {
      const CLI::Option* option = find_option(*line.command, words[i]);
      if (option != nullptr && takes_value(*option) && words[i].find('=') == std::string::npos)
        line.option = option;
    } else {
      line.positionals.push_back(words[i]);
    }
  }
  return line;
}

// Directories that `word` can become. One with a sweep, or within one, goes before others.
void add_directories(const std::string& word, Candidates& candidates) {
  const std::size_t slash = word.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : word.substr(0, slash + 1);
  const auto add_below = [&candidates](const std::string& prefix, bool sweeps_only) {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(prefix.empty() ? "." : prefix, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      const std::string name = it->path().filename().string();
      if (name[0] == '.' || !it->is_directory(ignored)) continue;
      if (!sweeps_only || fs::exists(it->path() / kSweepFile, ignored)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) candidates.add(prefix + name + "/");
  };
  if (word.empty()) add_below("runs/", true);
  add_below(parent, false);
}

void add_columns(const SweepKeys& keys, bool metrics_only, const std::string& before,
                 Candidates& candidates) {
  for (const std::string& name : metric_columns()) candidates.add(before + name);
  if (metrics_only) return;
  for (const std::string& name : other_columns(keys.axes())) candidates.add(before + name);
}

// "{a,b}" in the type that CLI11 shows for an option with choices.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

SweepKeys keys_of_line(const Line& line) {
  if (line.positionals.empty()) return SweepKeys("");
  const fs::path given = line.positionals[0];
  std::error_code error;
  return SweepKeys(fs::is_directory(given, error) ? given / kSweepFile : given);
}

// `before`: what stands before the value in the same word, "--by=".
void add_option_values(const Line& line, const CLI::Option& option, const std::string& before,
                       const std::string& word, Candidates& candidates) {
  const std::string type = option.get_type_name();
  for (const std::string& choice : choices_of(type)) candidates.add(before + choice);
  const std::size_t comma = word.rfind(',');
  if (type == "KEY") {
    const SweepKeys keys = keys_of_line(line);
    for (const std::string& key : keys.axes()) candidates.add(before + key);
    if (option.get_name() == "--sort") add_columns(keys, true, before, candidates);
  } else if (type == "METRIC") {
    add_columns(SweepKeys(""), true, before, candidates);
  } else if (type.starts_with("NAME,")) {
    add_columns(keys_of_line(line), false,
                before + (comma == std::string::npos ? "" : word.substr(0, comma + 1)), candidates);
  } else if (type == "N|auto") {
    candidates.add(before + "auto");
  } else if (type == "DEVICE") {
    for (const char* device : {"auto", "cpu", "cuda"}) candidates.add(before + device);
  } else if (type == "DIR" || type == "LOGDIR" || type == "FOLDER") {
    add_directories(word, candidates);
  } else if (type == "FILE") {
    candidates.files = true;
  }
}

void add_positional(const Line& line, const std::string& word, Candidates& candidates) {
  const std::string command = line.command->get_name();
  const std::size_t index = line.positionals.size();
  if (command == "completion" && index == 0) {
    for (const char* shell : {"bash", "zsh", "fish"}) candidates.add(shell);
    return;
  }
  if (command == "data") {
    if (index == 0) {
      candidates.add("get", "download a known data set");
      candidates.add("clean", "empty the cache");
    } else if (line.positionals[0] == "get") {
      for (const std::string& name : dataset_names()) candidates.add(name);
      return;
    }
  }
  // The last positional takes all that follow.
  std::vector<const CLI::Option*> positionals =
      line.command->get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (positionals.empty()) return;
  const std::string type = positionals[std::min(index, positionals.size() - 1)]->get_type_name();
  if (type == "KEY=VALUE") return SweepKeys(line.positionals[0]).complete(word, candidates);
  if (type == "DIR" || type == "LOGDIR" || type == "RUN") return add_directories(word, candidates);
  candidates.files = true;
}

void add_options(const CLI::App& command, Candidates& candidates) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      candidates.add("--" + name, option->get_description());
  }
}

}  // namespace

Candidates complete_words(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& word = words.back();
  const Line line = line_of(app, words);
  Candidates candidates;
  if (line.option != nullptr) {
    add_option_values(line, *line.option, "", word, candidates);
  } else if (word.starts_with("-")) {
    const CLI::Option* option = find_option(*line.command, word);
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      add_options(*line.command, candidates);
      if (words.size() == 1) add_options(app, candidates);
    } else if (option != nullptr) {
      add_option_values(line, *option, word.substr(0, equals + 1), word.substr(equals + 1), candidates);
    }
  } else if (words.size() == 1) {
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
      if (!command->get_group().empty()) candidates.add(command->get_name(), command->get_description());
    }
    candidates.files = true;
  } else {
    add_positional(line, word, candidates);
  }
  std::erase_if(candidates.list, [&word](const Candidate& c) { return !c.text.starts_with(word); });
  return candidates;
}

}  // namespace sweep
