// `sweep ls`: the sweeps in a log directory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/inspect/recorded_progress.h"
#include "runmanager/inspect/sweep_listing.h"
#include "runmanager/slurm/slurm_status.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"
#include "tools/table_format.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

struct LsOptions {
  std::filesystem::path logdir = "runs";
  TableFormat format = TableFormat::kText;
};

// What Slurm says of the tasks of a sweep that nobody trains now and that is not done.
std::optional<SlurmStatus> tasks_of(const ListedSweep& sweep, const std::filesystem::path& logdir) {
  if (sweep.is_running || !sweep.problem.empty()) return std::nullopt;
  const bool is_done =
      std::ranges::all_of(sweep.statuses, [](const auto& entry) { return has_ended(entry.first); });
  if (is_done || !has_slurm_jobs(logdir / sweep.path)) return std::nullopt;
  try {
    SlurmClient client;
    return slurm_status(logdir / sweep.path, client);
  } catch (const DataError&) {
    return std::nullopt;  // Who lists all sweeps has not asked for this one: "sweep status" says what is
                          // wrong.
  }
}

// "14 completed, 2 skipped".
std::string statuses_text(const ListedSweep& sweep, const std::optional<SlurmStatus>& tasks) {
  if (!sweep.problem.empty()) return sweep.problem;
  std::string text = sweep.is_running ? "running: " : "";
  if (tasks && !tasks->known) text = "on a cluster that does not answer: ";
  if (tasks && tasks->known && tasks->any_live()) text = "on a cluster: ";
  bool first = true;
  for (const auto& [status, count] : sweep.statuses) {
    text += fmt::format("{}{} {}", first ? "" : ", ", count, to_string(status));
    first = false;
  }
  return text;
}

void print_table(const std::vector<ListedSweep>& sweeps, const LsOptions& options) {
  TextTable table({"sweep", "runs", "last end", "best run", "accuracy"}, 4);
  for (const ListedSweep& sweep : sweeps) {
    table.rows.push_back({sweep.path, statuses_text(sweep, tasks_of(sweep, options.logdir)), sweep.ended,
                          sweep.best, metric_text(metric_named("accuracy"), sweep.best_accuracy)});
  }
  std::cout << formatted_table(table, options.format, stdout_unicode());
}

Json sweeps_json(const std::vector<ListedSweep>& sweeps, const std::filesystem::path& logdir) {
  Json list = Json::array();
  for (const ListedSweep& sweep : sweeps) {
    Json entry = {{"sweep", sweep.path}, {"runs", sweep.runs}, {"running", sweep.is_running}};
    entry["statuses"] = Json::object();
    for (const auto& [status, count] : sweep.statuses)
      entry["statuses"][std::string(to_string(status))] = count;
    entry["best"] = sweep.best.empty() ? Json(nullptr) : Json{{"run", sweep.best}};
    if (sweep.best_accuracy) entry["best"]["accuracy"] = json_number(*sweep.best_accuracy);
    entry["started"] = sweep.started;
    entry["ended"] = sweep.ended;
    if (!sweep.problem.empty()) entry["problem"] = sweep.problem;
    if (const auto tasks = tasks_of(sweep, logdir)) entry["slurm"] = to_json(*tasks);
    list.push_back(std::move(entry));
  }
  return list;
}

int list(const LsOptions& options) {
  const std::vector<ListedSweep> sweeps = list_sweeps(options.logdir);
  if (options.format == TableFormat::kJson) {
    print_json(sweeps_json(sweeps, options.logdir));
  } else if (sweeps.empty() && options.format == TableFormat::kText) {
    std::cout << printable(options.logdir.string()) << ": no sweeps\n";
  } else {
    print_table(sweeps, options);
  }
  return kExitDone;
}

}  // namespace

Command ls_command() {
  return {.name = "ls",
          .description = "list the sweeps in a log directory",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<LsOptions>();
            app.add_option("logdir", options->logdir, "where sweeps are; default: runs")->type_name("LOGDIR");
            add_format_option(app, options->format);
            return [options](const auto&) { return list(*options); };
          }};
}

}  // namespace sweep
