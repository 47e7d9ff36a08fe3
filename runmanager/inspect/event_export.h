// Scalars and hyperparameters of a log directory, also of one that other programs wrote, as CSV, JSON or
// Markdown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tbwriter/event_decoder.h"

namespace sweep {

struct ExportedPoint {
  std::int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  double value = 0;
};

struct ExportedScalar {
  std::string tag;
  std::vector<ExportedPoint> points;  // in the order they were written
};

struct ExportedRun {
  std::string name;  // its directory, relative to the log directory; "." for that itself, as in TensorBoard
  tbwriter::DecodedSession session;     // hyperparameters, and how it ended
  std::vector<ExportedScalar> scalars;  // in the order their tags first came
};

struct ExportedLogdir {
  std::filesystem::path directory;
  std::vector<ExportedRun> runs;    // by name
  std::vector<std::string> damage;  // what could not be read, in words; empty if all could be
};

/// Reads every events file below `directory`; links are not followed. With `tags`, only scalars of which one
/// of these regular expressions (ECMAScript) matches the beginning: "Loss/" takes all of that group. Points
/// that a continued run has written again count once, as TensorBoard shows them. Throws ConfigError for a
/// wrong expression; DataError if there is no such directory, no events file in it, or no tag that matches.
ExportedLogdir read_logdir(const std::filesystem::path& directory, const std::vector<std::string>& tags = {});

/// A row per point: run, tag, step, wall_time, value, and then "hparam.<name>" for each hyperparameter of any
/// run. A run without scalars has one row with empty cells. Quoted and written as in results.csv.
std::string export_csv(const ExportedLogdir& logdir);

/// {"logdir", "runs": [{"name", "hparams", "status", "start_time", "end_time", "scalars": {tag: [{"step",
/// "wall_time", "value"}]}}]}. NaN and infinities are strings, as in results.json.
std::string export_json(const ExportedLogdir& logdir);

/// One table: a row per run, with its hyperparameters and the last value of each scalar.
std::string export_markdown(const ExportedLogdir& logdir);

}  // namespace sweep
