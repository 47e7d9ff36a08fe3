#include "tools/commands/trained_options.h"

#include <fmt/format.h>

#include "core/base/printable.h"
#include "tools/output.h"

namespace sweep {

void add_trained_options(CLI::App& app, TrainedOptions& options) {
  add_value(app, "run RUN", options.run, "runs/NAME/RUN, or runs/NAME if it has one completed run")
      ->required();
  app.add_option("--weights", options.weights,
                 "those of the last epoch or of the best one; default: the best if the run kept them")
      ->check(one_of({kKeepLast, kKeepBest}));
}

CLI::Option* add_data_option(CLI::App& app, TrainedOptions& options) {
  return add_value(app, "--data PATH", options.data,
                   "where the run's data are now; default: where they were");
}

LoadedRun load_run(const TrainedOptions& options) {
  std::optional<WhichWeights> which;
  if (!options.weights.empty())
    which = options.weights == kKeepBest ? WhichWeights::kBest : WhichWeights::kLast;
  return load_run(options.run, which, options.data);
}

void add_device_option(CLI::App& app, std::string& device) {
  add_value(app, "--device DEVICE", device,
            "cpu, cuda, cuda:N or auto; default: what trained the run, or the CPU if that is missing");
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
