// `sweep plan`: prints what `sweep run` would train, keep, continue or refuse.
#include "runmanager/plan/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "core/base/printable.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "runmanager/config/data_check.h"
#include "runmanager/records/existing_runs.h"
#include "runmanager/sweep/requested_runs.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

struct PlanOptions {
  SweepArguments sweep;
  std::filesystem::path logdir = "runs";
  bool fresh = false, replace = false;
  bool json = false;
};

std::string note_of(const ExistingRun& existing, const RunConfig& config) {
  if (existing.fate == RunFate::kInTheWay) return to_string(existing.differences);
  if (existing.is_adopted(config)) return "now called " + existing.directory;
  if (existing.fate == RunFate::kContinued && existing.record)
    return fmt::format("after {} of {} epochs", existing.record->epochs.size(), config.epochs);
  return existing.note;
}

int print_plan(const PlanOptions& options) {
  const Sweep sweep = load_sweep(options.sweep.file, options.sweep.overrides, options.sweep.load);
  DatasetCache data(load_dataset);
  std::vector<ExistingRun> existing(sweep.runs.size());
  if (options.fresh) {
    if (const std::exception_ptr error = load_datasets(sweep, data)) std::rethrow_exception(error);
  } else {
    existing = preview_existing_runs(sweep, options.logdir, data);
  }
  // Data that is gone is no matter if all runs are finished and the sizes are known by its name.
  const auto sizes = [&data](const DatasetSpec& spec) {
    const auto known = data.find(spec) ? std::nullopt : known_data_sizes(spec);
    if (known) return *known;
    return sizes_of(*data.get(spec));
  };
  check_against_data(sweep, sizes);
  SweepPlan plan = make_plan(sweep, sizes, unavailable_reason);
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    plan.runs[i].fate = to_string(existing[i].fate);
    plan.runs[i].note = note_of(existing[i], sweep.runs[i]);
  }
  if (options.json) {
    print_json(plan_json(plan));
  } else {
    std::cout << printable(plan_text(plan)) << std::flush;
  }
  if (!options.replace) {
    WeightsDigests weights;
    refuse_runs_in_the_way(options.logdir / sweep.name, requested_runs(sweep, data, weights, parse_device),
                           existing);
  }
  return kExitDone;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .description =
              "print every run of a sweep file, and what an earlier start has left of it, without training",
          .missing_argument = "a sweep file is needed: sweep plan SWEEP.json [key=v1,v2,... ...]",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<PlanOptions>();
            add_sweep_arguments(app, options->sweep);
            app.add_option("--logdir", options->logdir, "where the sweep's directory is, or would be")
                ->type_name("DIR")
                ->capture_default_str();
            app.add_flag("--fresh", options->fresh, "as if nothing were there yet");
            app.add_flag("--replace", options->replace,
                         "runs that are there with other settings are no mistake");
            app.add_flag("--json", options->json, "as JSON");
            return [options](const auto&) { return print_plan(*options); };
          }};
}

}  // namespace sweep
