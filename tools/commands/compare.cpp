// `sweep compare`: pairs runs that differ in one setting, and tells what it changed.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "runmanager/answers/comparison.h"
#include "runmanager/inspect/run_listing.h"
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
    std::ranges::move(source_runs(directory, read_current_sweep(directory).runs), std::back_inserter(runs));
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
            add_value(app, "directories DIR", options.directories,
                      "runs/NAME; several are compared with each other")
                ->required();
            add_value(app, "--by KEY", options.key,
                      "the setting: device, optimizer, …, or \"sweep\" for the directories; default: "
                      "the device, or the only one that varies");
            add_value(app, "--metric METRIC", options.metric,
                      "epoch_seconds, run_seconds, images_per_second, loss, test_accuracy, …; default: "
                      "epoch_seconds");
            add_format_option(app, options.format);
            for (const char* name : {"csv", "markdown", "latex"}) add_format_flag(app, name, options.format);
          })};
}

}  // namespace sweep
