// The options of the commands that use the network of a run that was trained.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/inference/trained_run.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sweep {

struct TrainedOptions {
  std::filesystem::path run;     // its directory, or that of a sweep with one completed run
  std::string weights;           // "last" or "best"; empty: as load_run() chooses
  std::filesystem::path data{};  // where the run's data are now; empty: where they were
};

/// Adds the run, which is required, and --weights to `app`; `options` must outlive it.
void add_trained_options(CLI::App& app, TrainedOptions& options);

/// Adds --data, for data that were moved since the run was trained.
CLI::Option* add_data_option(CLI::App& app, TrainedOptions& options);

/// load_run() as the options say.
LoadedRun load_run(const TrainedOptions& options);

/// Adds --device, as the sweep file takes it.
void add_device_option(CLI::App& app, std::string& device);

/// load_data_of(); a warning goes to stderr if the data are no longer those of the run.
Dataset load_data_with_warning(const RecordedRun& run);

}  // namespace sweep
