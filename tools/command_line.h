// The command line: which commands and options there are, and what was asked for.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runmanager/config/sweep_file.h"
#include "runmanager/sweep/sweep_runner.h"

namespace CLI {
class App;
}

namespace sweep {

/// What was typed.
struct CommandLine {
  std::filesystem::path file;          // run, plan: the sweep file; show, fsck, export: a directory
  std::vector<std::string> overrides;  // "lr=0.1,0.01"
  LoadOptions load;
  RunnerOptions runner;
  bool json = false;
  std::string shell;              // completion
  std::vector<std::string> tags;  // export: regular expressions
  std::string format;             // export: "csv", "json", "markdown"; empty: as the output file is called
  std::size_t verify_runs = 0;    // verify: how many; 0: all
  std::filesystem::path output;   // export: a file; empty: standard output
};

/// The commands; each returns an exit code or throws. Tests put others in their place.
struct Commands {
  std::function<int(const CommandLine&)> run, plan, show, devices, schema, fsck, export_logdir, verify;
};

/// Parses `words`, without the program's name, and runs the command that they name. Prints help and version
/// to stdout. A first word that is no command is a sweep file. Throws ConfigError for words that cannot be
/// understood, saying what is allowed and the nearest right word.
int run_command_line(std::vector<std::string> words, const Commands& commands);

/// A script that completes this command line in "bash", "zsh" or "fish". Throws ConfigError for another
/// shell.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace sweep
