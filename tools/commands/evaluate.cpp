// `sweep evaluate`: measures the network of a run on a part of its data.
#include <CLI/CLI.hpp>

#include "runmanager/inference/evaluation_text.h"
#include "runmanager/inference/predictor.h"
#include "tools/commands.h"
#include "tools/commands/trained_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

struct EvaluateOptions {
  TrainedOptions trained;
  std::string part, device;
  TableFormat format = TableFormat::kText;
};

int evaluate(const EvaluateOptions& options) {
  const LoadedRun run = load_run(options.trained);
  const Dataset data = load_data_with_warning(run);
  std::string part = options.part;
  const Subset samples = part_of(data, part);
  Predictor predictor(run, options.device);
  const RunScores scores = score_samples(run, predictor, samples, part);
  print_as(
      options.format, [&] { return evaluation_json(run, scores); },
      [&] { return evaluation_text(run, scores, stdout_unicode()); },
      [&] { return evaluation_tables(scores, options.format); });
  return kExitDone;
}

}  // namespace

Command evaluate_command() {
  return {.name = "evaluate",
          .description = "loss, confusion matrix, precision, recall and F1 of a run, or errors of numbers",
          .missing_argument = "the directory of a run is needed: sweep evaluate runs/NAME/RUN",
          .add_to = command_with<EvaluateOptions>(evaluate, [](CLI::App& app, EvaluateOptions& options) {
            add_trained_options(app, options.trained);
            add_data_option(app, options.trained);
            app.add_option("--part", options.part,
                           "of the run's data; default: test if there is one, else validation, else train")
                ->check(CLI::IsMember({"train", "validation", "test"}));
            add_device_option(app, options.device);
            add_format_option(app, options.format);
            app.footer("Exit codes: 0 evaluated, 2 no such run, or its data cannot be read.");
          })};
}

}  // namespace sweep
