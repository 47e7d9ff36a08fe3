// `sweep status`: how far a sweep is, or which sweeps a log directory has; --follow shows one until it
// ends.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_status.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/stop_signals.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct StatusOptions {
  fs::path directory = "runs";
  TableFormat format = TableFormat::kText;
  bool follow = false;
  bool expect_done = false;
};

// What another machine has written may become visible here only so much later.
constexpr std::chrono::seconds kVisibleAfter{60};
constexpr std::chrono::milliseconds kLookAgainAfter{500};
// A running sweep tells its progress about once a second.
constexpr std::chrono::milliseconds kBetweenLooks{250};

// The status once every run has ended, or does not end any more.
SweepStatus last_status(const fs::path& directory) {
  SweepStatus status = sweep_status(directory);
  auto end = std::chrono::steady_clock::now() + kVisibleAfter;
  while (status.unfinished > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookAgainAfter);
    SweepStatus next = sweep_status(directory);
    if (next.statuses != status.statuses) end = std::chrono::steady_clock::now() + kVisibleAfter;
    status = std::move(next);
  }
  return status;
}

// What Slurm says of the tasks of a sweep; nullopt for one that was not submitted.
std::optional<SlurmStatus> tasks_of(const fs::path& directory) {
  if (!has_slurm_jobs(directory)) return std::nullopt;
  SlurmClient client;
  return slurm_status(directory, client);
}

std::string one_status_text(const SweepStatus& status, const std::optional<SlurmStatus>& tasks) {
  std::string text =
      status_text(status, Terminal::of_output(), tasks ? HowToGoOn::kSaidElsewhere : HowToGoOn::kSay);
  if (tasks) text += slurm_status_text(*tasks, status.unfinished, status.directory);
  return text;
}

// A sweep of a list that nobody trains now and that is not done may have tasks. What is wrong with them is
// for its own status to say.
std::optional<SlurmStatus> tasks_if_open(const SweepStatus& sweep) {
  if (sweep.is_held || !sweep.problem.empty() || sweep.unfinished == 0) return std::nullopt;
  try {
    return tasks_of(sweep.directory);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// "running: 14 completed, 2 skipped".
std::string runs_text(const SweepStatus& sweep, const std::optional<SlurmStatus>& tasks) {
  const char* where = sweep.is_held ? "running: " : "";
  if (tasks && !tasks->known) where = "on a cluster that does not answer: ";
  if (tasks && tasks->known && tasks->any_live()) where = "on a cluster: ";
  return where + statuses_text(sweep);
}

// Below the log directory; empty: of a sweep that was named itself.
std::string path_of(const SweepStatus& sweep, const fs::path& logdir) {
  return (logdir.empty() ? sweep.directory : sweep.directory.lexically_relative(logdir)).string();
}

// As text a problem is told after the row, and many statuses are cut: they would leave others no room.
TextTable sweeps_table(const std::vector<SweepStatus>& sweeps, const fs::path& logdir, TableFormat format) {
  TextTable table({"sweep", "runs", "last end", "best run"}, 4);
  // Programs measure what they like; but a script finds the same columns.
  const bool any_accuracy =
      format != TableFormat::kText ||
      std::ranges::any_of(sweeps, [](const SweepStatus& sweep) { return sweep.best_accuracy.has_value(); });
  if (any_accuracy) table.add_column("accuracy", true);
  table.set_importances({kNeeded, kNeeded, 10, 20, 30});
  const int width = format == TableFormat::kText ? stdout_width() / 2 : 0;  // of the statuses
  for (const SweepStatus& sweep : sweeps) {
    const std::string statuses = runs_text(sweep, tasks_if_open(sweep));
    table.rows.push_back({path_of(sweep, logdir),
                          width > 0 ? fit_width(statuses, width, stdout_unicode()) : statuses, sweep.ended,
                          sweep.best});
    if (const auto accuracy = sweep.best_accuracy; any_accuracy)
      table.rows.back().push_back(format == TableFormat::kCsv && accuracy
                                      ? fmt::format("{}", *accuracy)
                                      : metric_text(metric_named("accuracy"), accuracy));
    if (format == TableFormat::kText) {
      table.tails.push_back(sweep.problem);
    } else if (!sweep.problem.empty()) {
      table.rows.back()[1] = sweep.problem;
    }
  }
  return table;
}

Json sweeps_json(const std::vector<SweepStatus>& sweeps, const fs::path& logdir) {
  Json list = Json::array();
  for (const SweepStatus& sweep : sweeps) {
    Json entry = {{"sweep", path_of(sweep, logdir)}, {"runs", sweep.runs}, {"running", sweep.is_held}};
    entry["statuses"] = statuses_json(sweep);
    entry["best"] = sweep.best.empty() ? Json(nullptr) : Json{{"run", sweep.best}};
    if (sweep.best_accuracy) entry["best"]["accuracy"] = json_number(*sweep.best_accuracy);
    entry["started"] = sweep.started;
    entry["ended"] = sweep.ended;
    if (!sweep.problem.empty()) entry["problem"] = sweep.problem;
    if (const auto tasks = tasks_if_open(sweep)) entry["slurm"] = to_json(*tasks);
    list.push_back(std::move(entry));
  }
  return list;
}

// The sweeps in a log directory; as text with the live tables of those in training.
void print_sweeps(const StatusOptions& options) {
  const std::vector<SweepStatus> sweeps = list_sweeps(options.directory);
  if (options.format == TableFormat::kJson) return print_json(sweeps_json(sweeps, options.directory));
  const bool is_text = options.format == TableFormat::kText;
  if (is_text && sweeps.empty()) {
    std::cout << printable(options.directory.string()) << ": no sweeps\n";
    return;
  }
  std::cout << formatted_table(sweeps_table(sweeps, options.directory, options.format),
                               style_of(options.format));
  if (!is_text) return;
  for (const SweepStatus& sweep : sweeps) {
    if (sweep.is_held) std::cout << '\n' << one_status_text(sweep_status(sweep.directory), std::nullopt);
  }
}

// The status of one sweep; as a table the row that it has in a list.
int print_sweep(const StatusOptions& options) {
  const fs::path& directory = options.directory;
  const SweepStatus status = options.expect_done ? last_status(directory) : sweep_status(directory);
  const auto tasks = [&] { return options.expect_done ? std::nullopt : tasks_of(directory); };
  const auto json = [&] {
    Json whole = to_json(status);
    if (const auto known = tasks()) whole["slurm"] = to_json(*known);
    return whole;
  };
  print_as(
      options.format, json, [&] { return one_status_text(status, tasks()); },
      [&] { return std::vector{sweeps_table({status}, "", options.format)}; });
  const bool is_done = status.unfinished == 0 && !status.statuses.contains(RunStatus::kFailed);
  return options.expect_done && !is_done ? kExitFailed : kExitDone;
}

int follow(const StatusOptions& options) {
  if (options.format != TableFormat::kText && options.format != TableFormat::kJson)
    throw ConfigError("--format: with --follow only text or json");
  const fs::path directory = find_sweep(options.directory);
  const StopSignals signals;
  SlurmClient client;
  const auto elsewhere = [&] {
    if (!has_slurm_jobs(directory)) return WatchedElsewhere();
    const SlurmStatus status = slurm_status(directory, client);
    // One that does not answer may have tasks; Ctrl-C ends the waiting.
    return WatchedElsewhere{.lives = !status.known || status.any_live(), .line = slurm_line(status)};
  };
  watch_sweep(directory, {.terminal = Terminal::of_output(),
                          .json = options.format == TableFormat::kJson,
                          .stop_requested = [] { return StopSignals::requested() != 0; },
                          .wait = [] { std::this_thread::sleep_for(kBetweenLooks); },
                          .elsewhere = elsewhere});
  return kExitDone;
}

int print_status(const StatusOptions& options) {
  if (options.follow) return follow(options);
  if (has_runs(options.directory) || SweepDirectory::is_held(options.directory)) return print_sweep(options);
  if (options.expect_done) {
    throw DataError(fmt::format("{}: has no sweep.json; --expect-done wants the directory of a sweep",
                                options.directory.string()));
  }
  print_sweeps(options);
  return kExitDone;
}

}  // namespace

Command status_command() {
  return {
      .name = "status",
      .description = "how far a sweep is, or the sweeps in a log directory; --follow: until it ends",
      .add_to = command_with<StatusOptions>(
          print_status,
          [](CLI::App& app, StatusOptions& options) {
            add_value(app, "directory DIR", options.directory,
                      "of a sweep, or a log directory; default: runs");
            auto* follow = app.add_flag("--follow", options.follow,
                                        "show the live table until the sweep ends or Ctrl-C; of a log "
                                        "directory the one sweep that runs. With --json a line per change");
            app.add_flag(
                   "--expect-done", options.expect_done,
                   "wait a minute for files of other machines, and end with 1 unless every run is completed, "
                   "skipped or pruned")
                ->excludes(follow);
            add_format_option(app, options.format);
          }),
      .old_words = {{"ls", {}}, {"watch", {"--follow"}}}};
}

}  // namespace sweep
