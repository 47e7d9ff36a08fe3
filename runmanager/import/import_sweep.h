// Adopts what other programs have logged as a finished sweep.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sweep {

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
