// Runs that other programs have left as events files, and their adoption as a finished sweep.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
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

struct ImportOptions {
  std::filesystem::path source;      // with events files in it or below
  std::filesystem::path logdir;      // where the sweep's directory is made
  std::string name;                  // of the sweep; empty: that of `source`
  std::vector<std::string> command;  // as typed, for the records
};

struct ImportedSweep {
  std::filesystem::path directory;
  std::size_t runs = 0;
  std::vector<std::string> remarks;  // what was left out, and why
};

/// Copies the events of each run to a directory of the sweep, with a run.json, and writes
/// sweep.json and results. If the end of a file is torn, only its whole records are copied. A run whose
/// hyperparameters TensorBoard lacks gets a further events file with them, and with the metrics that are in
/// subdirectories. Changes nothing in `source`. Throws ConfigError if the sweep exists already, or would be
/// below `source`; DataError if there are no events; IoError if it cannot be written, and then leaves nothing
/// behind.
ImportedSweep import_sweep(const ImportOptions& options);

}  // namespace sweep
