// Runs that other programs have left as events files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/config/params.h"
#include "runmanager/kinds/command/report_history.h"
#include "tbwriter/plugin_data.h"

namespace sweep {

struct ForeignRun {
  std::string name;                          // its directory below the one that was read; "." is that itself
  std::vector<std::filesystem::path> files;  // its events files, below that directory
  Params params;
  bool has_session = false;  // the files tell TensorBoard its hyperparameters
  std::optional<tbwriter::SessionStatus> status;
  std::vector<MetricReport> reports;                    // by ascending steps
  std::vector<double> times;                            // of each report: seconds since 1970
  std::vector<std::pair<std::string, double>> metrics;  // of the whole run
};

struct ForeignRuns {
  std::vector<ForeignRun> runs;      // sorted by name
  std::vector<std::string> remarks;  // what was left out, and why
};

/// Reads every events file in `directory` and below it. Subdirectories "train", "validation" and "test", as
/// Keras' users have them, and those of PyTorch's add_hparams(), called after a time, and add_scalars(),
/// called after a tag, belong to the run above them. Parameters are those of the hparams plugin, or of
/// hparams.yaml or config.yaml in the run's directory or above it, or "key=value" in its name; runs with
/// equal parameters get one more, "run". Each key has one type in all runs, where whole numbers are integers
/// if all of its values are. Changes nothing. Throws DataError if `directory` is not a directory or has no
/// scalars.
ForeignRuns read_foreign_runs(const std::filesystem::path& directory);

}  // namespace sweep
