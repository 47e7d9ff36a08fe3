// `sweep show`: prints the results in the directory of a sweep or a run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/engine/numbered_name.h"
#include "runmanager/answers/effects_report.h"
#include "runmanager/answers/run_order.h"
#include "runmanager/inference/trained_run.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/terminal/text_table.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  fs::path directory;  // of a sweep or a run; also the path of a run.json
  bool json = false, effects = false, verbose = false, parameters = false;
  std::string sort;
  std::vector<std::string> columns;
  std::size_t top = 0;  // so many runs; 0: all
  std::string metric;   // of the effects
};

// "0.4512", or "" for a value that was not measured.
std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : ""; }

void print_run(const RunRecord& run) {
  std::string text;
  text += fmt::format("{}: {}{}\n", run.name, to_string(run.status),
                      run.device.empty() ? "" : " on " + run.device);
  if (run.error) text += fmt::format("  {}\n", *run.error);
  for (const auto& [key, value] : run.params) text += fmt::format("  {} = {}\n", key, param_text(value));
  if (!run.epochs.empty() || run.untrained) {
    text += fmt::format("{:>5}  {:>8}  {:>8}  {:>15}  {:>19}  {:>8}  {:>10}\n", "epoch", "loss", "accuracy",
                        "validation_loss", "validation_accuracy", "seconds", "images/s");
  }
  for_each_epoch(run, [&](const EpochRecord& epoch) {
    text += fmt::format("{:>5}  {:>8}  {:>8}  {:>15}  {:>19}", epoch.epoch,
                        epoch.epoch > 0 ? cell(epoch.loss) : "", cell(epoch.accuracy),
                        cell(epoch.validation_loss), cell(epoch.validation_accuracy));
    if (epoch.epoch > 0)
      text += fmt::format("  {:>8.2f}  {:>10.0f}", epoch.epoch_seconds, epoch.images_per_second);
    if (epoch.epoch == run.best_epoch) text += "  best";
    text += "\n";
  });
  if (!run.stop_reason.empty()) text += fmt::format("  stopped early: {}\n", run.stop_reason);
  for (const auto& [name, value] : run.metrics) text += fmt::format("  {} = {:.4f}\n", name, value);
  if (run.setup_seconds) {
    text += fmt::format("  {} to set up{}\n", human_seconds(*run.setup_seconds),
                        run.placement.empty() ? "" : "; samples on the " + run.placement);
  }
  if (run.run_seconds) text += fmt::format("  {}\n", human_seconds(*run.run_seconds));
  std::cout << printable(text);
}

void print_run_directory(const fs::path& directory, bool json) {
  const RunRecord run =
      with_current_status(read_run_record(directory / "run.json"), fs::absolute(directory) / "..");
  if (json) {
    print_json(to_json(run));
  } else {
    print_run(run);
  }
}

void print_effects(const std::vector<RunRecord>& runs, const ShowOptions& options) {
  const Effects effects = effects_of(runs, options.metric);
  if (options.json) {
    print_json(effects_json(effects));
  } else {
    std::cout << effects_text(effects, stdout_unicode());
  }
}

void print_sweep_directory(const fs::path& directory, const ShowOptions& options) {
  std::vector<RunRecord> runs = list_runs(directory);
  for (RunRecord& run : runs) run = with_current_status(std::move(run), directory);
  if (options.effects) return print_effects(runs, options);
  if (!options.sort.empty()) sort_runs(runs, options.sort);
  const std::vector<std::string> keys = param_keys(runs);
  if (options.top > 0 && options.top < runs.size()) runs.resize(options.top);
  if (options.json) {
    print_json(results_json(runs, fs::weakly_canonical(directory).filename().string()));
  } else {
    std::cout << results_table(runs, keys,
                               {.color = stdout_color(),
                                .unicode = stdout_unicode(),
                                .width = stdout_width(),
                                .skipped = options.verbose,
                                .columns = options.columns});
  }
}

std::string device_text(const RunRecord& run) {
  try {
    return numbered_name(parse_device(run.device));
  } catch (const ConfigError&) {
    return run.device;  // of a program with a training loop of its own
  }
}

// As PyTorch's named_parameters(), without running statistics.
void print_parameters(const fs::path& directory, bool json) {
  const RecordedRun run = read_run(directory);
  const std::string device = device_text(run.record);
  const std::size_t total = run.network->parameter_count();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  TextTable table{.header = {"parameter", "shape", "device", "elements"}, .rows = {}, .left_aligned = 3};
  for (const Parameter& parameter : run.network->parameters()) {
    list.push_back({{"name", parameter.name},
                    {"shape", parameter.shape},
                    {"elements", parameter.count},
                    {"device", device}});
    table.rows.push_back(
        {parameter.name, to_string(parameter.shape), device, std::to_string(parameter.count)});
  }
  if (json) return print_json({{"parameters", std::move(list)}, {"elements", total}});
  table.rows.push_back({"all", "", "", std::to_string(total)});
  std::cout << terminal_table(table, stdout_unicode());
}

int show(const ShowOptions& options) {
  if (options.parameters) {
    print_parameters(options.directory, options.json);
    return kExitDone;
  }
  const fs::path& given = options.directory;
  const fs::path directory = given.filename() == "run.json" ? given.parent_path() : given;
  if (fs::exists(directory / "run.json")) {
    if (options.effects)
      throw ConfigError(
          fmt::format("{}: --effects needs the directory of a sweep, not of one run", directory.string()));
    print_run_directory(directory, options.json);
  } else if (has_runs(directory)) {
    print_sweep_directory(directory, options);
  } else {
    throw DataError(fmt::format(
        "{}: {}; want the directory of a sweep (with sweep.json), of a run (with run.json), or one "
        "with runs in it",
        given.string(), fs::exists(directory) ? "neither of these" : "is not there"));
  }
  return kExitDone;
}

}  // namespace

Command show_command() {
  return {
      .name = "show",
      .description = "print the results of a sweep's directory, or of one run's",
      .missing_argument = "a directory is needed: sweep show runs/NAME",
      .add_to = [](CLI::App& app) -> CommandAction {
        auto options = std::make_shared<ShowOptions>();
        app.add_option("directory", options->directory, "runs/NAME, or a directory in it")
            ->type_name("DIR")
            ->required();
        auto* json = app.add_flag("--json", options->json, "as JSON");
        app.add_flag("--verbose", options->verbose, "a line for each skipped run");
        auto* parameters = app.add_flag("--parameters", options->parameters,
                                        "of one run: name, shape, device and size of each of its weights");
        auto* effects = app.add_flag("--effects", options->effects,
                                     "what each setting changes, alone and in pairs, by analysis of "
                                     "variance; and the runs that none beats in both time and metric");
        app.add_option(
               "--sort", options->sort,
               "by a parameter, or by a metric (test_accuracy, loss, epoch_seconds, …) with the best first")
            ->type_name("KEY")
            ->excludes(effects);
        app.add_option("--columns", options->columns,
                       "only these, in this order: parameters, status, loss, test_accuracy, epoch_seconds, …")
            ->type_name("NAME,…")
            ->delimiter(',')
            ->excludes(effects)
            ->excludes(json);
        app.add_option("--top", options->top, "only so many runs of that order")
            ->type_name("N")
            ->check(CLI::PositiveNumber)
            ->excludes(effects);
        app.add_option("--metric", options->metric,
                       "of the effects: test_accuracy, loss, epoch_seconds, …; default: the validation "
                       "accuracy, or what else tells how good a run is")
            ->type_name("METRIC")
            ->needs(effects);
        effects->excludes(parameters);
        return [options](const auto&) { return show(*options); };
      }};
}

}  // namespace sweep
