// `sweep show`: prints the results in the directory of a sweep or a run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/config/run_name.h"
#include "runmanager/records/results.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ShowOptions {
  fs::path directory;  // of a sweep or a run; also the path of a run.json
  bool json = false;
};

// "0.4512", or "" for a value that was not measured.
std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : ""; }

void print_run(const RunRecord& run) {
  std::cout << fmt::format("{}: {}{}\n", run.name, to_string(run.status),
                           run.device.empty() ? "" : " on " + run.device);
  if (run.error) std::cout << fmt::format("  {}\n", *run.error);
  for (const auto& [key, value] : run.params) std::cout << fmt::format("  {} = {}\n", key, param_text(value));
  if (!run.epochs.empty()) {
    std::cout << fmt::format("{:>5}  {:>8}  {:>8}  {:>15}  {:>19}  {:>8}  {:>10}\n", "epoch", "loss",
                             "accuracy", "validation_loss", "validation_accuracy", "seconds", "images/s");
  }
  for (const EpochRecord& epoch : run.epochs) {
    std::cout << fmt::format("{:>5}  {:>8.4f}  {:>8.4f}  {:>15}  {:>19}  {:>8.2f}  {:>10.0f}\n", epoch.epoch,
                             epoch.loss, epoch.accuracy, cell(epoch.validation_loss),
                             cell(epoch.validation_accuracy), epoch.epoch_seconds, epoch.images_per_second);
  }
  for (const auto& [name, value] : run.metrics) std::cout << fmt::format("  {} = {:.4f}\n", name, value);
  if (run.setup_seconds) {
    std::cout << fmt::format("  {} to set up{}\n", human_seconds(*run.setup_seconds),
                             run.placement.empty() ? "" : "; samples on the " + run.placement);
  }
  if (run.run_seconds) std::cout << "  " << human_seconds(*run.run_seconds) << '\n';
}

Json read_json(const fs::path& path) {
  Json json = Json::parse(read_file(path), nullptr, false);
  if (json.is_discarded() || !json.is_object())
    throw DataError(path.string() + ": is not the JSON that a sweep writes");
  return json;
}

// run.json of a killed sweep still says "running". The sweep's lock tells whether it is.
RunRecord with_derived_status(RunRecord run, const fs::path& sweep) {
  if (run.status != RunStatus::kRunning || SweepDirectory::is_held(sweep)) return run;
  run.status = RunStatus::kInterrupted;
  run.error = "its sweep ended without a word; the same command goes on";
  return run;
}

// The records of the runs that sweep.json names, in its order. A run without a run.json was not started: its
// record has nothing but the name.
std::vector<RunRecord> read_sweep_records(const fs::path& directory) {
  const Json file = read_json(directory / "sweep.json");
  std::vector<RunRecord> runs;
  for (const Json& name : file.value("runs", Json::array())) {
    if (!name.is_string())
      throw DataError((directory / "sweep.json").string() + ": \"runs\" is no list of names");
    const fs::path path = directory / name.get<std::string>() / "run.json";
    if (fs::exists(path)) {
      runs.push_back(with_derived_status(read_run_record(path), directory));
    } else {
      runs.emplace_back().name = name.get<std::string>();
    }
  }
  return runs;
}

// The hyperparameters of all runs, in the order they first appear.
std::vector<std::string> param_names(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.params) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

void print_run_directory(const fs::path& directory, bool json) {
  const RunRecord run =
      with_derived_status(read_run_record(directory / "run.json"), fs::absolute(directory) / "..");
  if (json) {
    print_json(to_json(run));
  } else {
    print_run(run);
  }
}

void print_sweep_directory(const fs::path& directory, bool json) {
  const std::vector<RunRecord> runs = read_sweep_records(directory);
  if (json) {
    print_json(results_json(runs, fs::weakly_canonical(directory).filename().string()));
  } else {
    std::cout << results_table(
        runs, param_names(runs),
        {.color = stdout_color(), .unicode = stdout_unicode(), .width = stdout_width()});
  }
}

int show(const ShowOptions& options) {
  const fs::path& given = options.directory;
  const fs::path directory = given.filename() == "run.json" ? given.parent_path() : given;
  if (fs::exists(directory / "run.json")) {
    print_run_directory(directory, options.json);
  } else if (fs::exists(directory / "sweep.json")) {
    print_sweep_directory(directory, options.json);
  } else {
    throw DataError(
        fmt::format("{}: {}; want the directory of a sweep (with sweep.json) or of a run (with run.json)",
                    given.string(), fs::exists(directory) ? "neither of these" : "is not there"));
  }
  return kExitDone;
}

}  // namespace

Command show_command() {
  return {.name = "show",
          .description = "print the results of a sweep's directory, or of one run's",
          .missing_argument = "a directory is needed: sweep show runs/NAME",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<ShowOptions>();
            app.add_option("directory", options->directory, "runs/NAME, or a directory in it")
                ->type_name("DIR")
                ->required();
            app.add_flag("--json", options->json, "as JSON");
            return [options](const auto&) { return show(*options); };
          }};
}

}  // namespace sweep
