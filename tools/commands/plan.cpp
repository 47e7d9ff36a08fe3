// `sweep plan`: prints what `sweep run` would train.
#include "runmanager/config/plan.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

struct PlanOptions {
  SweepArguments sweep;
  bool json = false;
};

// Reads the data set only if its sizes are not known by its name.
DataSizes sizes_of(const DatasetSpec& spec) {
  if (const auto known = known_data_sizes(spec)) return *known;
  const Dataset data = load_dataset(spec);
  return {data.shape, data.class_names.size(), data.train.count};
}

int print_plan(const PlanOptions& options) {
  const Sweep sweep = load_sweep(options.sweep.file, options.sweep.overrides, options.sweep.load);
  check_against_data(sweep, sizes_of);
  const SweepPlan plan = make_plan(sweep, sizes_of, unavailable_reason);
  if (options.json) {
    print_json(plan_json(plan));
  } else {
    std::cout << plan_text(plan);
  }
  return kExitDone;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .description = "print every run of a sweep file without training",
          .missing_argument = "a sweep file is needed: sweep plan SWEEP.json [key=v1,v2,... ...]",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<PlanOptions>();
            add_sweep_arguments(app, options->sweep);
            app.add_flag("--json", options->json, "as JSON");
            return [options](const auto&) { return print_plan(*options); };
          }};
}

}  // namespace sweep
