#include "tools/commands/trained_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/base/printable.h"

namespace sweep {

void add_trained_options(CLI::App& app, TrainedOptions& options) {
  app.add_option("run", options.run, "runs/NAME/RUN, or runs/NAME if it has one completed run")
      ->type_name("RUN")
      ->required();
  app.add_option("--weights", options.weights,
                 "those of the last epoch or of the best one; default: the best if the run kept them")
      ->check(CLI::IsMember({kKeepLast, kKeepBest}));
}

CLI::Option* add_data_option(CLI::App& app, TrainedOptions& options) {
  return app.add_option("--data", options.data, "where the run's data are now; default: where they were")
      ->type_name("PATH");
}

LoadedRun load_run(const TrainedOptions& options) {
  std::optional<WhichWeights> which;
  if (!options.weights.empty())
    which = options.weights == kKeepBest ? WhichWeights::kBest : WhichWeights::kLast;
  return load_run(options.run, which, options.data);
}

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device,
                 "cpu, cuda, cuda:N or auto; default: what trained the run, or the CPU if that is missing")
      ->type_name("DEVICE");
}

Dataset load_data_with_warning(const RecordedRun& run) {
  bool changed = false;
  Dataset data = load_data_of(run, changed);
  if (changed) {
    std::cerr << printable(fmt::format("sweep: {}: its files have another content than when {} was trained\n",
                                       data.source.string(), run.record.name));
  }
  return data;
}

}  // namespace sweep
