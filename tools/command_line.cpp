#include "tools/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "runmanager/records/provenance.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/named_files.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

constexpr const char* kShortHelp =
    "a sweep file is needed, or a command:\n"
    "  sweep SWEEP.json [key=v1,v2,... ...]   train every combination, or resume: sweep sweeps/fashion.json "
    "lr=0.1,0.01\n"
    "  sweep lr=0.1,0.01 -- python3 train.py --lr={lr}   the same with a program of your own\n"
    "  sweep plan SWEEP.json                  print every run without training\n"
    "  sweep show runs/NAME                   print the results again\n"
    "\"sweep --help\" tells more.";

// CLI11 would write that a command comes first, but a sweep file may also be there.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() != nullptr) return CLI::Formatter::make_usage(app, "sweep " + app->get_name());
    return "Usage: sweep SWEEP.json [key=v1,v2,... ...] [options]\n"
           "  or:  sweep [key=v1,v2,... ...] [options] -- PROGRAM ARGUMENTS...\n"  // as help2man wants it
           "  or:  sweep COMMAND ...\n";
  }
};

enum class Named { kAll, kForPeople };

std::vector<std::string> names_of(const std::vector<Command>& commands, Named which) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (which == Named::kAll || !command.is_for_scripts) names.push_back(command.name);
  }
  return names;
}

// `sweep watch runs/NAME` becomes `sweep status --follow runs/NAME`.
void replace_old_word(std::vector<std::string>& words, const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    for (const auto& [old, options] : command.old_words) {
      if (words.front() != old) continue;
      words.front() = command.name;
      words.insert(words.begin() + 1, options.begin(), options.end());
      return;
    }
  }
}

// `sweep help plan …` becomes `sweep plan --help`. A program is not run: it has the help of running one.
void replace_help(std::vector<std::string>& words) {
  if (words.front() != "help") return;
  std::erase(words, "help");
  words.resize(std::min<std::size_t>(words.size(), 1));
  if (!words.empty() && words[0] == "--") words[0] = kDefaultCommand;
  words.emplace_back("--help");
}

// Throws unless `word` can be a sweep file: a word that is neither a file nor a path is most likely a
// mistyped command.
void check_is_file(const std::string& word, const std::vector<std::string>& commands) {
  refuse_other_than_file(word);
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) return;
  if (word.find_first_of("./=") != std::string::npos) return;  // A path: reading it reports the error.
  const std::string meant = suggestion(word, commands);
  throw ConfigError(fmt::format("{}: no such file, and no command: {}{}", word, fmt::join(commands, ", "),
                                meant.empty() ? did_you_mean(nearest_file(word).string()) : meant));
}

// `sweep lr=0.1,0.01 -- python3 train.py {flags}`: what follows "--" is a person's own program, in the place
// of a sweep file. Each of its words becomes an option, as it may begin like one, and follows a colon, as it
// may be empty.
void replace_program(std::vector<std::string>& words, const std::vector<Command>& commands) {
  const auto end = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> names = names_of(commands, Named::kAll);
  const bool has_command = std::find(names.begin(), names.end(), words.front()) != names.end();
  const bool takes_program = !has_command || words.front() == kDefaultCommand || words.front() == "plan";
  if (end == words.end() || !takes_program) return;
  const std::vector<std::string> program(end + 1, words.end());
  if (program.empty())
    throw ConfigError("a program is needed after --: sweep lr=0.1,0.01 -- python3 train.py {flags}");
  words.erase(end, words.end());
  if (!has_command) words.insert(words.begin(), kDefaultCommand);
  words.insert(words.begin() + 1, kProgramWord);
  for (const std::string& word : program) words.push_back("--program-word=:" + word);
}

// Inserts kDefaultCommand where the line begins with a file or an option.
void insert_default_command(std::vector<std::string>& words, const std::vector<Command>& commands) {
  const std::string& first = words.front();
  const std::vector<std::string> names = names_of(commands, Named::kAll);
  if (std::find(names.begin(), names.end(), first) != names.end()) return;
  if (first == "--help" || first == "-h" || first == "--version") return;
  if (first[0] != '-') check_is_file(first, names_of(commands, Named::kForPeople));
  words.insert(words.begin(), kDefaultCommand);
}

// CLI11 takes a word in brackets for a list: "[a]" for "a". Begun with a character that no word has, until it
// is read, it stays what it is.
constexpr char kMark = '\0';

void mark_brackets(std::vector<std::string>& words) {
  for (std::string& word : words) {
    if (word.starts_with('[')) word.insert(0, 1, kMark);
  }
}

void read_without_mark(CLI::App& command) {
  const auto remove_mark = [](std::string& word) {
    std::erase(word, kMark);
    return std::string();
  };
  for (CLI::Option* option : command.get_options()) option->transform(CLI::Validator(remove_mark, ""));
}

// Returns the key of sweep files that somebody gives as other programs want it: "--batch-size" is batch_size.
std::string meant_key(std::string option) {
  std::ranges::replace(option, '-', '_');
  const std::string key = our_name(option.substr(std::min(option.find_first_not_of('_'), option.size())));
  const std::vector<std::string> keys = sweepable_keys();
  return std::ranges::find(keys, key) != keys.end() ? key : "";
}

// CLI11 reports an unknown option only as unexpected, so they are checked first. What follows an option may
// be its value, "-x" as well.
void check_options(const CLI::App& command, const std::vector<std::string>& words, bool has_command) {
  std::vector<std::string> known = long_options(command);
  if (!has_command) known.emplace_back("--version");
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") return;  // Behind it there are no options.
    const bool is_long = words[i].starts_with("--");
    const bool is_short = words[i].size() > 1 && words[i][0] == '-' && !words[i - 1].starts_with("-") &&
                          std::isalpha(static_cast<unsigned char>(words[i][1])) != 0;
    if (!is_long && !is_short) continue;
    const std::string option = words[i].substr(0, is_long ? words[i].find('=') : 2);
    if (command.get_option_no_throw(option) != nullptr) continue;  // Also one that is not for people.
    const bool takes_keys = command.get_option_no_throw("overrides") != nullptr;
    const std::string key = takes_keys ? meant_key(option) : "";
    std::string hint = key.empty() ? suggestion(option, known) : did_you_mean(key + "=VALUE");
    if (hint.empty() && takes_keys && words[i].find('=') != std::string::npos)
      hint = "; keys of a sweep have no dashes: " + words[i].substr(words[i].find_first_not_of('-'));
    throw ConfigError(fmt::format("unknown option {}, allowed: {}{}", option, fmt::join(known, ", "), hint));
  }
}

// Words a message of CLI11 for an option without its value, or given twice, as others are.
std::string reworded(const std::string& message) {
  constexpr std::string_view kRequired = ": 1 required ", kMissing = " missing",
                             kAgain = ": At Most 1 required";
  const std::size_t again = message.find(kAgain), required = message.find(kRequired);
  if (again != std::string::npos) return message.substr(0, again) + ": is given more than once";
  if (required == std::string::npos || !message.ends_with(kMissing)) return message;
  const std::size_t begin = required + kRequired.size();
  const std::string type = message.substr(begin, message.size() - kMissing.size() - begin);
  return fmt::format("{0}: a value is missing, want {0} {1}", message.substr(0, required),
                     type.substr(0, type.find(':')));  // "NAME:{local,slurm}"
}

template <typename... Errors>
bool is_any(const std::exception& error) {
  return (... || (dynamic_cast<const Errors*>(&error) != nullptr));
}

struct ExitCode {
  const char* code;     // several of one kind
  const char* meaning;  // half a line
};

constexpr ExitCode kCodes[] = {
    {"0", "all runs are done or skipped"},
    {"1", "a run failed, or memory ran out"},
    {"2", "a mistake in command line, sweep file or data"},
    {"3", "output cannot be written, or is held by another sweep"},
    {"75", "stopped by SIGUSR1, SIGUSR2 or --max-time: run the same command again"},
    {"129, 130, 143", "interrupted by SIGHUP, SIGINT or SIGTERM"}};

std::string exit_codes_help() {
  std::string text = "\"sweep COMMAND --help\" tells more of each.\n\nExit codes:\n";
  for (const ExitCode& code : kCodes) text += fmt::format("  {:<13}  {}\n", code.code, code.meaning);
  text.pop_back();
  return text;
}

}  // namespace

void refuse_other_than_file(const std::string& word) {
  std::error_code ignored;
  if (word.ends_with(".py") && !std::filesystem::is_directory(word, ignored))
    throw ConfigError(fmt::format(
        "{0} is no sweep file; a program goes after axes and --: sweep lr=0.1,0.01 -- python3 {0} {{flags}}",
        word));
  const std::size_t equals = word.find('=');
  if (equals != std::string::npos && word.find('/') > equals && !word.ends_with(".json") &&
      !std::filesystem::exists(word, ignored)) {
    throw ConfigError(
        fmt::format("a sweep file is needed in front of {0}: sweep SWEEP.json {0}; or a program after "
                    "it: sweep {0} -- PROGRAM",
                    word));
  }
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // For scripts of the program itself.
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

void refuse_given(std::initializer_list<GivenOption> options, std::string_view reason,
                  const std::string& subject) {
  for (const auto& [name, is_given] : options) {
    if (is_given)
      throw ConfigError(subject.empty() ? fmt::format("{}: {}", name, reason)
                                        : fmt::format("{}: {} {}", subject, name, reason));
  }
}

int run_command_line(std::vector<std::string> words, const std::vector<Command>& commands,
                     const std::string& program) {
  if (words.empty()) throw ConfigError(kShortHelp);
  std::vector<std::string> typed = {program};
  typed.insert(typed.end(), words.begin(), words.end());
  // Often a variable of a script that is not set. CLI11 would take the next word for the value of
  // "--logdir=". What follows "--" is another program's.
  const auto is_empty = [](const std::string& word) {
    return word.empty() || (word.starts_with("--") && word.find('=') == word.size() - 1);
  };
  if (const auto end = std::find(words.begin(), words.end(), "--"); std::any_of(words.begin(), end, is_empty))
    throw ConfigError("an argument is empty, want a value: " + shell_command(typed));
  CLI::App app("Trains one network per combination of hyperparameters, and logs each for TensorBoard.",
               "sweep");
  app.set_version_flag("--version", "sweep " + program_version() + " (" + program_revision() + ")");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default(false);
  std::vector<CommandAction> actions;
  for (const Command& command : commands) {
    CLI::App& subcommand = *app.add_subcommand(command.name, command.description);
    if (command.is_for_scripts) subcommand.group("");
    actions.push_back(command.add_to(subcommand));
    read_without_mark(subcommand);
  }
  app.footer(exit_codes_help());  // Commands would copy it if it were there before them.

  const std::vector<std::string> names = names_of(commands, Named::kAll);
  replace_help(words);
  replace_old_word(words, commands);
  replace_program(words, commands);
  insert_default_command(words, commands);
  // commands.size() if the first word is an option of the program itself.
  const auto chosen =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), words.front()) - names.begin());
  const bool has_command = chosen < commands.size();
  if (has_command) check_options(*app.get_subcommand(names[chosen]), words, words.front() == typed[1]);
  mark_brackets(words);
  std::reverse(words.begin(), words.end());  // The order that CLI11 takes them in.
  try {
    app.parse(words);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int code = app.exit(help, text, text);
    std::cout << wrapped(text.str(), stdout_width());
    return code;
  } catch (const CLI::ParseError& error) {
    const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    std::string message =
        is_missing && has_command ? commands[chosen].missing_argument : reworded(error.what());
    std::erase(message, kMark);
    throw ConfigError(fmt::format("{}\nTry \"{} {}--help\".", message, typed_program(),
                                  has_command ? names[chosen] + " " : ""));
  }
  return actions.at(chosen)(typed);
}

int exit_code(const std::exception& error) {
  if (is_any<ConfigError, DataError>(error)) return kExitBadInput;
  return is_any<IoError, std::filesystem::filesystem_error>(error) ? kExitUnwritable : kExitFailed;
}

std::string message_of(const std::exception& error) {
  const auto* of_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_path == nullptr) return error.what();
  constexpr std::size_t kMaxShownPath = 200;
  const bool is_long = of_path->code() == std::errc::filename_too_long;
  return fmt::format("{}: {}{}", shown_text(of_path->path1().string(), kMaxShownPath),
                     of_path->code().message(),
                     is_long ? ", want a path of at most 4,095 bytes whose parts have at most 255 each" : "");
}

}  // namespace sweep
