#include "tools/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "runmanager/config/problems.h"
#include "runmanager/config/settings.h"
#include "runmanager/records/provenance.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

constexpr std::array<const char*, 2> kOptionsToCome = {"--fuse", "--launcher"};
constexpr std::array<const char*, 2> kCommandsToCome = {"compare", "report"};

constexpr const char* kShortHelp =
    "a sweep file is needed, or a command:\n"
    "  sweep SWEEP.json [key=v1,v2,... ...]   train every combination, or resume: sweep sweeps/fashion.json "
    "lr=0.1,0.01\n"
    "  sweep plan SWEEP.json                  print every run without training\n"
    "  sweep show runs/NAME                   print the results again\n"
    "\"sweep --help\" tells more.";

// What a command needs first, and how that is given.
std::string missing_argument(const std::string& command) {
  const auto text = [&](const char* what, const char* words) {
    return fmt::format("{} is needed: sweep {}{}", what, command, words);
  };
  if (command == "run") return "a sweep file is needed: sweep SWEEP.json [key=v1,v2,... ...] [options]";
  if (command == "plan") return text("a sweep file", " SWEEP.json [key=v1,v2,... ...]");
  if (command == "show" || command == "fsck") return text("a directory", " runs/NAME");
  if (command == "export") return text("a log directory", " LOGDIR");
  return text("a shell", " bash|zsh|fish");
}

// The keys of a sweep file, from the table that checks them.
std::string keys_help() {
  std::string text = "Keys of a sweep file:\n";
  for (const Setting& setting : file_settings()) {
    if (setting.name[0] == '$') continue;
    text += fmt::format(
        "  {:<12} {}{}\n", setting.name, setting.help,
        setting.default_value ? fmt::format(" (default {})", to_string(*setting.default_value)) : "");
  }
  return text + "\"sweep schema\" prints all of them with types and limits.";
}

void add_sweep_arguments(CLI::App& command, CommandLine& line) {
  command.add_option("file", line.file, "the sweep file")->type_name("SWEEP.json")->required();
  command
      .add_option("overrides", line.overrides,
                  "key=value replaces a value of the file, key=v1,v2,... an axis: lr=0.1,0.01 epochs=3")
      ->type_name("KEY=VALUE");
  command.add_option("--epochs", line.load.epochs, "epochs of every run")->type_name("N");
  command.add_option("--seed", line.load.seed, "seed of every run")->type_name("N");
  command.add_flag_callback(
      "--deterministic", [&line] { line.load.deterministic = true; },
      "the same run gives the same bits each time, on CUDA too, which is the default");
  command.add_flag_callback(
      "--no-deterministic", [&line] { line.load.deterministic = false; },
      "NVIDIA's libraries may add up in any order where that is faster");
  command.footer(keys_help());
}

CLI::Validator jobs_validator() {
  return CLI::Validator(
      [](std::string& word) {
        constexpr int kMostJobs = 1024;
        if (word == "auto") {
          word = "0";
          return std::string();
        }
        int jobs = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), jobs);
        const bool good =
            error == std::errc() && end == word.data() + word.size() && jobs >= 1 && jobs <= kMostJobs;
        return good ? std::string() : fmt::format("got {}, want 1 to {}, or auto", word, kMostJobs);
      },
      "");
}

// CLI11 takes nan and inf for numbers.
CLI::Validator seconds_validator() {
  return CLI::Validator(
      [](std::string& word) {
        char* end = nullptr;
        const double seconds = std::strtod(word.c_str(), &end);
        const bool good = end != word.c_str() && *end == '\0' && std::isfinite(seconds) && seconds >= 0;
        return good ? std::string() : fmt::format("got {}, want a number of seconds >= 0", word);
      },
      "");
}

void add_run(CLI::App& app, CommandLine& line) {
  CLI::App& command =
      *app.add_subcommand("run", "train all runs of a sweep file, or resume; \"run\" may be left out");
  add_sweep_arguments(command, line);
  RunnerOptions& runner = line.runner;
  command.add_option("--logdir", runner.logdir, "where the sweep's directory is made")
      ->type_name("DIR")
      ->capture_default_str();
  // The library's word for auto is 0.
  command
      .add_option(
          "--jobs", runner.jobs,
          "runs at once; auto: one per core. More than one share the cores, so their times are longer")
      ->type_name("N|auto")
      ->transform(jobs_validator())
      ->default_str("1");
  command
      .add_option("--threads", runner.threads,
                  "CPU threads per run; 0: the cores, divided over the runs at once")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_flag("--fresh", runner.fresh, "start anew in NAME-2, NAME-3, ... instead of resuming");
  command.add_flag("--fail-fast", runner.fail_fast, "end at the first run that fails");
  command
      .add_option("--retry", runner.retry,
                  "try a run that failed up to N times again, from its last finished epoch")
      ->type_name("N")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command.add_flag("!--no-retry-failed", runner.retry_failed,
                   "leave runs alone that failed in an earlier start");
  command.add_option("--timeout", runner.timeout, "a run that takes longer has failed; 0: any time")
      ->type_name("SECONDS")
      ->check(seconds_validator())
      ->capture_default_str();
  command
      .add_option("--max-time", runner.max_time,
                  "stop after this time, with exit code 75: the same command goes on; 0: never")
      ->type_name("SECONDS")
      ->check(seconds_validator())
      ->capture_default_str();
  command.add_flag("--strict", runner.strict, "a run whose device is missing fails instead of being skipped");
  command.add_flag("--quiet", runner.quiet, "no progress");
  command.add_flag("--json", line.json, "results as JSON on standard output instead of the table");
}

void add_export(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand(
      "export", "scalars and hyperparameters of a log directory, of any program, as CSV, JSON or Markdown");
  command.add_option("logdir", line.file, "a directory with events files in it or below")
      ->type_name("LOGDIR")
      ->required();
  command
      .add_option("--format", line.format,
                  "csv: a row per point; json; markdown: a row per run with last values; default: as FILE is "
                  "called, else csv")
      ->check(CLI::IsMember({"csv", "json", "markdown"}));
  command.add_option("-o,--output", line.output, "instead of standard output")->type_name("FILE");
  command
      .add_option("--tag", line.tags,
                  "only scalars whose tag begins with this, a regular expression; may be given again")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command.footer(
      "Exit codes: 0 everything exported, 1 all but what is damaged, 2 no such directory, events file or "
      "tag,\n3 FILE cannot be written.");
}

void add_commands(CLI::App& app, CommandLine& line) {
  add_run(app, line);
  CLI::App& plan = *app.add_subcommand("plan", "print every run of a sweep file without training");
  add_sweep_arguments(plan, line);
  plan.add_flag("--json", line.json, "as JSON");
  CLI::App& show = *app.add_subcommand("show", "print the results of a sweep's directory, or of one run's");
  show.add_option("directory", line.file, "runs/NAME, or a directory in it")->type_name("DIR")->required();
  show.add_flag("--json", line.json, "as JSON");
  CLI::App& fsck =
      *app.add_subcommand("fsck", "check every file of a sweep, run or log directory for damage");
  fsck.add_option("directory", line.file, "runs/NAME, a directory in it, or one above")
      ->type_name("DIR")
      ->required();
  fsck.add_flag("--json", line.json, "as JSON");
  fsck.footer("Exit codes: 0 no damage, 1 damage, 2 no such directory or nothing in it to check.");
  CLI::App& verify =
      *app.add_subcommand("verify", "train finished runs of a sweep again, and compare every bit");
  verify.add_option("directory", line.file, "runs/NAME")->type_name("DIR")->required();
  verify.add_option("--runs", line.verify_runs, "so many, spread over the sweep; 0: all")
      ->type_name("N")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  verify.add_option("--threads", line.runner.threads, "CPU threads, which must not matter; 0: all")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verify.footer(
      "Exit codes: 0 every bit is the same, 1 some are not, 2 no such directory or no finished run in it.");
  add_export(app, line);
  CLI::App& devices = *app.add_subcommand("devices", "print what there is to train on");
  devices.add_flag("--json", line.json, "as JSON");
  app.add_subcommand("schema", "print the JSON schema of sweep files");
  CLI::App& completion = *app.add_subcommand("completion", "print a completion script for a shell");
  completion.add_option("shell", line.shell, "bash, zsh or fish")->required();
}

// CLI11 knows nothing of a sweep file in the place of a command.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() != nullptr) return CLI::Formatter::make_usage(app, "sweep " + app->get_name());
    return "Usage: sweep SWEEP.json [key=v1,v2,... ...] [options]\n       sweep COMMAND ...\n";
  }
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// An option that `command` does not have, in words.
[[noreturn]] void throw_unknown_option(const CLI::App& command, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  if (std::find(kOptionsToCome.begin(), kOptionsToCome.end(), option) != kOptionsToCome.end()) {
    throw ConfigError(option + " is not available in this version");
  }
  std::vector<std::string> names = option_names(command);
  throw ConfigError(fmt::format("unknown option {}, allowed: {}{}", option, fmt::join(names, ", "),
                                suggestion(option, names)));
}

// The first word is neither a command nor a file: most likely one of them mistyped.
void check_file_or_command(const CLI::App& app, const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) return;
  if (std::find(kCommandsToCome.begin(), kCommandsToCome.end(), word) != kCommandsToCome.end()) {
    throw ConfigError("the command " + word + " is not available in this version");
  }
  if (word.find('=') != std::string::npos && word.find('.') == std::string::npos) {
    throw ConfigError("a sweep file is needed in front of " + word + ": sweep SWEEP.json " + word);
  }
  if (word.find_first_of("./=") != std::string::npos) return;  // A path; reading it will say what is wrong.
  const std::vector<std::string> names = command_names(app);
  throw ConfigError(fmt::format("{}: no such file, and no command: {}{}", word, fmt::join(names, ", "),
                                suggestion(word, names)));
}

// Puts "run" in front where it was left out.
void complete_words(const CLI::App& app, std::vector<std::string>& words) {
  if (words.empty()) return;
  const std::vector<std::string> names = command_names(app);
  const std::string& first = words.front();
  if (std::find(names.begin(), names.end(), first) != names.end()) return;
  if (first == "--help" || first == "-h" || first == "--version") return;
  if (first[0] != '-') check_file_or_command(app, first);
  words.insert(words.begin(), "run");
}

int dispatch(const CLI::App& app, const CommandLine& line, const Commands& commands) {
  const std::string name = app.get_subcommands().at(0)->get_name();
  if (name == "plan") return commands.plan(line);
  if (name == "show") return commands.show(line);
  if (name == "fsck") return commands.fsck(line);
  if (name == "verify") return commands.verify(line);
  if (name == "export") return commands.export_logdir(line);
  if (name == "devices") return commands.devices(line);
  if (name == "schema") return commands.schema(line);
  if (name == "completion") {
    std::cout << completion_script(app, line.shell);
    return kExitDone;
  }
  return commands.run(line);
}

}  // namespace

int run_command_line(std::vector<std::string> words, const Commands& commands) {
  CommandLine line;
  CLI::App app("Trains one network per combination of hyperparameters, and logs each for TensorBoard.",
               "sweep");
  app.set_version_flag("--version", "sweep " + program_version() + " (" + program_revision() + ")");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "\"sweep COMMAND --help\" tells more of each.\n\nExit codes: 0 all runs done or skipped, 1 a run "
      "failed, 2 bad command line, "
      "sweep file or data,\n3 output cannot be written, 75 to be run again, 130 or 143 interrupted.");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default(false);
  add_commands(app, line);

  line.runner.command = {"sweep"};
  line.runner.command.insert(line.runner.command.end(), words.begin(), words.end());
  if (words.empty()) throw ConfigError(kShortHelp);
  complete_words(app, words);
  const CLI::App* command = &app;
  for (const CLI::App* candidate : app.get_subcommands(nullptr)) {
    if (!words.empty() && candidate->get_name() == words[0]) command = candidate;
  }
  for (std::size_t i = 1; i < words.size() && command != &app; ++i) {
    // CLI11 would only say that it did not expect the word.
    const std::string name = words[i].substr(0, words[i].find('='));
    const std::vector<std::string> known = option_names(*command);
    if (words[i].rfind("--", 0) == 0 && words[i].size() > 2 &&
        std::find(known.begin(), known.end(), name) == known.end()) {
      throw_unknown_option(*command, words[i]);
    }
  }
  std::reverse(words.begin(), words.end());  // As CLI11 takes them.
  try {
    app.parse(words);
  } catch (const CLI::Success& help) {
    return app.exit(help, std::cout, std::cerr);
  } catch (const CLI::RequiredError&) {
    throw ConfigError(fmt::format("{}\nTry \"sweep {} --help\".", missing_argument(command->get_name()),
                                  command->get_name()));
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}\nTry \"sweep {}--help\".", error.what(),
                                  command == &app ? "" : command->get_name() + " "));
  }
  return dispatch(app, line, commands);
}

}  // namespace sweep
