// Parses the command line, and runs the command that it names; and the exit codes of the program.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace sweep {

/// Runs a command after its options are parsed. `typed` is the command line as the user wrote it, with the
/// program in front. Returns the exit code, or throws an error of core/base/error.h.
using CommandAction = std::function<int(const std::vector<std::string>& typed)>;

/// One command of the program; tools/commands.h lists them.
struct Command {
  std::string name;         // the first word of the command line
  std::string description;  // one line of `sweep --help`
  /// The error message for a line without a required argument; empty if the command has none.
  std::string missing_argument = {};
  /// Adds options and help to `app`, the command's part of the parser, and returns what to do with them. The
  /// action owns the variables that options are parsed into, and `app` lives as long as the action.
  std::function<CommandAction(CLI::App& app)> add_to;
  bool is_for_scripts = false;  // help, messages and the manual do not name it
  /// Words of earlier versions for this command, which help does not name either, and what each adds to it.
  std::vector<std::pair<std::string, std::vector<std::string>>> old_words = {};
};

/// Command::add_to of a command whose options are parsed into an `Options`: add(app, options) declares them,
/// and run(options) returns the exit code.
template <typename Options>
std::function<CommandAction(CLI::App&)> command_with(int (*run)(const Options& options),
                                                     void (*add)(CLI::App& app, Options& options)) {
  return [add, run](CLI::App& app) -> CommandAction {
    const auto options = std::make_shared<Options>();
    add(app, *options);
    return [options, run](const auto&) { return run(*options); };
  };
}

/// An option, and whether a line has it.
struct GivenOption {
  const char* name;
  bool is_given;
};
/// Throws ConfigError, "SUBJECT: --name REASON", for the first of `options` that is given: one that would
/// change nothing is a mistake. `subject` may be empty.
void refuse_given(std::initializer_list<GivenOption> options, std::string_view reason,
                  const std::string& subject = "");

/// Throws ConfigError for what people give in the place of a sweep file: "lr=0.1", or a script in Python.
void refuse_other_than_file(const std::string& word);

/// The command of a line whose first word is a sweep file or an option.
inline constexpr const char* kDefaultCommand = "run";

/// Parses `words`, the command line without the program's name, and runs the command that they name. Help and
/// version go to stdout. Returns the command's exit code, or 0 after help. Throws ConfigError for words that
/// it does not understand, with the allowed and the nearest ones. kDefaultCommand has to be in `commands`.
/// `program`: what the user typed to start the program, for messages that say how to go on.
int run_command_line(std::vector<std::string> words, const std::vector<Command>& commands,
                     const std::string& program = "sweep");

/// Replaces the sweep file if a line has "-- PROGRAM", whose words are in --program-word.
inline constexpr const char* kProgramWord = "(program)";

/// Names of the options of `command` that its help shows, in that order: "--epochs".
std::vector<std::string> long_options(const CLI::App& command);

// Those of a stopped sweep, 75, 129, 130 and 143, come from SweepOutcome::exit_code.
inline constexpr int kExitDone = 0;        // all runs done or skipped
inline constexpr int kExitFailed = 1;      // a run failed, memory ran out, or any other error
inline constexpr int kExitBadInput = 2;    // command line, sweep file or data
inline constexpr int kExitUnwritable = 3;  // disk, permission, held by another sweep

/// The code for an error that ended the program: kExitFailed unless its type says more.
int exit_code(const std::exception& error);

/// Returns the message for the user: its own text; for a file system error the path, what is wrong and, if a
/// name is too long, the limit.
std::string message_of(const std::exception& error);

}  // namespace sweep
