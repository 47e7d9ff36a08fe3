// Exports the scalars and hyperparameters of a log directory as CSV, JSON or Markdown. It may come from other
// programs, such as PyTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/config/params.h"
#include "tbwriter/event_reader.h"

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
  std::string name;  // its directory relative to the log directory; "." for that itself, as in TensorBoard
  tbwriter::DecodedSession session;     // hyperparameters, start and end
  std::vector<ExportedScalar> scalars;  // in the order of their first points
};

struct ExportedLogdir {
  std::filesystem::path directory;
  std::vector<ExportedRun> runs;    // sorted by name
  std::vector<std::string> damage;  // a message for each thing that could not be read
};

/// Reads every events file below `directory`; links are not followed. With `tags`, regular expressions in the
/// syntax of ECMAScript, only scalars are read whose tag begins with a match of one: "Loss/" selects that
/// group. Points that a resumed run wrote again count once, as TensorBoard shows them. Throws ConfigError for
/// an invalid expression; DataError if there is no such directory, no events file in it, or no matching tag.
ExportedLogdir read_logdir(const std::filesystem::path& directory, const std::vector<std::string>& tags = {});

/// A value that was read from a file: it is never null.
ParamValue to_param(const tbwriter::HParamValue& value);

/// One row per point: run, tag, step, wall_time, value, and a column "hparam.<name>" for every hyperparameter
/// of any run. A run without scalars has one row with empty cells. Quoted as results.csv is.
std::string export_csv(const ExportedLogdir& logdir);

/// {"logdir", "runs": [{"name", "hparams", "status", "start_time", "end_time", "scalars": {tag: [{"step",
/// "wall_time", "value"}]}}]}. NaN and infinities are strings, as in results.json.
std::string export_json(const ExportedLogdir& logdir);

/// A table with a row per run: its hyperparameters and the last value of each scalar.
std::string export_markdown(const ExportedLogdir& logdir);

}  // namespace sweep
