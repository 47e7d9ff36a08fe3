// `sweep compare`: pairs runs that differ in one setting, and tells what it changed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "runmanager/answers/comparison.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/terminal/terminal.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<fs::path> directories;
  std::string key, metric;
  TableFormat format = TableFormat::kText;
};

std::vector<SourceRun> runs_of(const std::vector<fs::path>& directories) {
  std::vector<SourceRun> runs;
  for (const fs::path& directory : directories) {
    std::ranges::move(source_runs(directory, read_sweep(directory).runs), std::back_inserter(runs));
  }
  return runs;
}

int compare(const CompareOptions& options) {
  check_differ(options.directories);
  const Comparison comparison = compare_runs(runs_of(options.directories), options.key, options.metric);
  if (options.format == TableFormat::kJson) {
    print_json(comparison_json(comparison));
  } else {
    std::cout << comparison_text(comparison, style_of(options.format));
  }
  const bool has_pairs =
      std::ranges::any_of(comparison.values, [](const auto& value) { return !value.pairs.empty(); });
  return has_pairs ? kExitDone : kExitBadInput;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .description = "pair runs that differ in one setting: times, metrics, learning curves",
          .missing_argument = "a directory is needed: sweep compare runs/NAME",
          .add_to = command_with<CompareOptions>(compare, [](CLI::App& app, CompareOptions& options) {
            app.add_option("directories", options.directories,
                           "runs/NAME; several are compared with each other")
                ->type_name("DIR")
                ->required();
            app.add_option("--by", options.key,
                           "the setting: device, optimizer, …, or \"sweep\" for the directories; default: "
                           "the device, or the only one that varies")
                ->type_name("KEY");
            app.add_option("--metric", options.metric,
                           "epoch_seconds, run_seconds, images_per_second, loss, test_accuracy, …; default: "
                           "epoch_seconds")
                ->type_name("METRIC");
            add_format_option(app, options.format);
            for (const char* name : {"csv", "markdown", "latex"}) add_format_flag(app, name, options.format);
          })};
}

}  // namespace sweep
