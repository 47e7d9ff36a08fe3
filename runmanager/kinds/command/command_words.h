// What a person's program is started with: words, environment and parameters.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// What the words and the environment of one start depend on.
struct CommandStart {
  const RunConfig& config;
  std::filesystem::path run_directory;  // absolute
  int attempt = 1;
  int threads = 1;                     // its share of the cores
  std::vector<std::string> gpus = {};  // that it has for itself; see CommandSpec::gpus
  int until = 0;                       // reports after which it must end by itself; 0: whenever it likes
};

inline constexpr const char* kParamsFile = "params.json";
/// Reports as JSON lines: the program appends to it, and so does the worker, for reports of other sources.
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kCheckpointFolder = "checkpoint";
/// A run that continues another starts from this folder: it has that one's kCheckpointFolder, kMetricsFile
/// and run.json.
inline constexpr const char* kStartFolder = "start";

/// The program and its arguments, with every substitution made; with a shell, the shell and its text. Leaves
/// out words with a parameter that the run does not have, also those of the shell's text.
std::vector<std::string> command_words(const CommandStart& start);

/// The environment, as NAME=VALUE: this process's, with what the sweep tells its programs.
std::vector<std::string> command_environment(const CommandStart& start);

/// The content of kParamsFile.
std::string params_text(const RunConfig& config);

/// Throws ConfigError if a word has an unknown substitution. `keys`: the parameters.
void check_substitutions(const CommandSpec& spec, const std::vector<std::string>& keys);
/// Whether any word has one.
bool has_substitutions(const CommandSpec& spec, const std::vector<std::string>& keys);

}  // namespace sweep
