#include "runmanager/inspect/sweep_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/json/json_text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/trial_schedule.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Two levels of folders below a log directory, and no deeper: the given directory may be "/".
constexpr int kMaxFolderLevels = 3;

// Calls ends(path) for the directories below, and goes further down where it returns false. Follows no links,
// which could lead back here.
void walk(const fs::path& directory, const std::function<bool(const fs::path&)>& ends,
          int levels = kMaxFolderLevels) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;
    if (!ends(it->path()) && levels > 1) walk(it->path(), ends, levels - 1);
  }
}

constexpr std::string_view kWanted = "the directory of a sweep, such as runs/NAME, or a log directory";

// A search that has found or taken enough leaves its other trials as they are.
void find_search_end(const RecordedSweep& sweep, SweepStatus& status) {
  const auto search = sweep.file.find("search");
  if (search == sweep.file.end() || !search->is_object()) return;
  const Json target = search->value("target", Json()), seconds = search->value("seconds", Json());
  const auto count = [&status](RunStatus of) {
    return status.statuses.contains(of) ? status.statuses[of] : 0;
  };
  if (const Goals goals = recorded_goals(sweep.file); target.is_number()) {
    const auto reaches = [&](const RunRecord& run) {
      const auto value =
          run.status == RunStatus::kCompleted ? run_metric(run, *goals[0].metric) : std::nullopt;
      return value && goals[0].cost(*value) <= goals[0].cost(target);
    };
    if (std::ranges::any_of(sweep.runs, reaches)) {
      status.search_end = fmt::format("{} of {} is reached", goals[0].asked, target.get<double>());
      status.unfinished -= count(RunStatus::kPending);  // Those that have begun are trained on.
    }
  }
  double spent = 0;
  for (const RunRecord& run : sweep.runs) spent += own_seconds(run);
  if (!seconds.is_number() || spent < seconds.get<double>()) return;
  if (status.unfinished == 0 && trials_to_come(sweep.file) <= status.runs) return;  // All were tried.
  status.search_end = fmt::format("trials have taken the {} that they may", human_seconds(seconds));
  status.unfinished = 0;
}

// The trials that a stopped search has not chosen yet: all that it knows may have ended.
std::size_t trials_left(const RecordedSweep& sweep, const SweepStatus& status) try {
  if (status.unfinished > 0 || !status.search_end.empty() || trials_to_come(sweep.file) <= status.runs)
    return 0;
  LoadOptions load;
  load.cuda_device_count = std::numeric_limits<int>::max();  // Whether its devices are here does not matter.
  const Sweep whole = load_sweep(status.directory / kSweepFile, {}, load);
  const std::size_t trials = std::max(all_trials(whole), status.runs);
  return open_trials(whole, sweep.runs, false) > 0 ? trials - status.runs : 0;
} catch (const Error&) {
  return 0;  // It is of another version, or its data are not on this machine.
}

void sum_up(SweepStatus& status) {
  const RecordedSweep sweep = read_current_sweep(status.directory, status.is_held);
  status.runs = sweep.runs.size();
  for (const RunRecord& run : sweep.runs) {
    ++status.statuses[run.status];
    // UTC times of one format sort as texts.
    if (!run.started.empty() && (status.started.empty() || run.started < status.started))
      status.started = run.started;
    status.ended = std::max(status.ended, run.ended);
    status.unfinished += has_ended(run.status) ? 0 : 1;
  }
  if (!status.is_held) {
    find_search_end(sweep, status);
    status.unfinished += trials_left(sweep, status);
  }
  if (const auto best = best_run(sweep.runs, goals_of(sweep))) {
    status.best = sweep.runs[*best].name;
    status.best_accuracy = run_metric(sweep.runs[*best], "validation_accuracy");
    if (!status.best_accuracy) status.best_accuracy = run_metric(sweep.runs[*best], "accuracy");
  }
}

SweepState state_of(const SweepStatus& status) {
  // Processes that share the directory tell of their runs only.
  if (status.progress || status.statuses.contains(RunStatus::kRunning)) return SweepState::kRunning;
  if (status.is_held) return SweepState::kStarting;
  std::error_code error;
  if (fs::exists(status.directory / kProgressFile, error)) return SweepState::kDied;
  return status.unfinished > 0 ? SweepState::kInterrupted : SweepState::kEnded;
}

}  // namespace

std::string_view to_string(SweepState state) {
  static const EnumNames<SweepState> names("state", {"starting", "running", "ended", "interrupted", "died"});
  return names.of(state);
}

fs::path find_sweep(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / kSweepFile, error) || SweepDirectory::is_held(directory)) return directory;
  require_directory(directory, kWanted);
  std::vector<std::string> found;
  walk(directory, [&found](const fs::path& path) {
    const bool is_held = SweepDirectory::is_held(path);
    if (is_held) found.push_back(path.string());
    std::error_code ignored;
    return is_held || fs::exists(path / kSweepFile, ignored);
  });
  if (found.empty())
    throw DataError(fmt::format("{}: no sweep is running in it; \"{}\" lists those there are",
                                directory.string(), shell_command({typed_program(), "status"}, directory)));
  if (found.size() > 1)
    throw ConfigError(fmt::format("{}: several sweeps are running in it; name one of {}", directory.string(),
                                  listed(found)));
  return found[0];
}

std::optional<LiveSweep> read_progress(const fs::path& directory) {
  const fs::path path = directory / kProgressFile;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::string text;
  try {
    text = read_file(path);
  } catch (const DataError&) {
    if (!fs::exists(path, error)) return std::nullopt;  // The sweep has ended meanwhile.
    throw;
  }
  return live_sweep_from_json(parse_json_text(text, path.string()), path.string());
}

SweepStatus sweep_status(const fs::path& directory) {
  SweepStatus status{.directory = directory, .is_held = SweepDirectory::is_held(directory)};
  if (has_runs(directory)) sum_up(status);
  if (status.is_held) status.progress = read_progress(directory);
  status.state = state_of(status);
  return status;
}

std::vector<SweepStatus> list_sweeps(const fs::path& logdir) {
  require_directory(logdir, kWanted);
  std::vector<SweepStatus> sweeps;
  walk(logdir, [&sweeps](const fs::path& path) {
    if (!has_runs(path)) return false;
    SweepStatus& status =
        sweeps.emplace_back(SweepStatus{.directory = path, .is_held = SweepDirectory::is_held(path)});
    try {
      sum_up(status);
    } catch (const fs::filesystem_error& problem) {
      status.problem = fmt::format("{}: {}", problem.path1().string(), problem.code().message());
    } catch (const Error& problem) {
      status.problem = problem.what();
    }
    return true;
  });
  std::ranges::sort(sweeps, {}, [](const SweepStatus& sweep) { return sweep.directory.string(); });
  return sweeps;
}

std::string status_text(const SweepStatus& status, const Terminal& terminal, HowToGoOn how_to_go_on) {
  const bool can_go_on = status.state == SweepState::kInterrupted || status.state == SweepState::kDied;
  const bool is_elsewhere = can_go_on && how_to_go_on == HowToGoOn::kSaidElsewhere;
  std::string text = fmt::format("{}: {}", printable(status.directory.string()),
                                 is_elsewhere ? "on a cluster" : to_string(status.state));
  text += (status.statuses.empty() ? "" : ": ") + statuses_text(status) + "\n";
  if (!status.search_end.empty()) text += "No more trials: " + status.search_end + "\n";
  if (status.progress) {
    for (const std::string& line : live_table(*status.progress, terminal)) text += line + "\n";
  }
  if (can_go_on && !is_elsewhere)
    text += "To go on: " + shell_command({typed_program(), "resume"}, status.directory) + "\n";
  return text;
}

std::string statuses_text(const SweepStatus& status) {
  std::string text;
  for (const auto& [run_status, count] : status.statuses)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(run_status));
  return text;
}

Json statuses_json(const SweepStatus& status) {
  Json statuses = Json::object();
  for (const auto& [run_status, count] : status.statuses)
    statuses[std::string(to_string(run_status))] = count;
  return statuses;
}

Json to_json(const SweepStatus& status) {
  return {{"sweep", fs::weakly_canonical(status.directory).filename().string()},
          {"directory", status.directory.string()},
          {"state", to_string(status.state)},
          {"runs", status.runs},
          {"statuses", statuses_json(status)},
          {"progress", status.progress ? to_json(*status.progress) : Json(nullptr)}};
}

}  // namespace sweep
