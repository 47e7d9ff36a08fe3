#include "runmanager/inspect/sweep_status.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/json/json_text.h"
#include "runmanager/config/problems.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_listing.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/terminal/live_json.h"
#include "runmanager/terminal/live_table.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void add_running(const fs::path& directory, int levels, std::vector<std::string>& found) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;
    if (SweepDirectory::is_held(it->path())) {
      found.push_back(it->path().string());
    } else if (levels > 1 && !fs::exists(it->path() / kSweepFile, ignored)) {
      add_running(it->path(), levels - 1, found);
    }
  }
}

SweepState state_of(const SweepStatus& status, bool is_held) {
  // Processes that share the directory tell of their runs only.
  if (is_held) {
    return status.progress || status.statuses.contains(RunStatus::kRunning) ? SweepState::kRunning
                                                                            : SweepState::kStarting;
  }
  std::error_code error;
  if (fs::exists(status.directory / kProgressFile, error)) return SweepState::kDied;
  for (const RunStatus unfinished : {RunStatus::kPending, RunStatus::kInterrupted}) {
    if (status.statuses.contains(unfinished)) return SweepState::kInterrupted;
  }
  return SweepState::kEnded;
}

}  // namespace

std::string_view to_string(SweepState state) {
  switch (state) {
    case SweepState::kStarting:
      return "starting";
    case SweepState::kRunning:
      return "running";
    case SweepState::kEnded:
      return "ended";
    case SweepState::kInterrupted:
      return "interrupted";
    case SweepState::kDied:
      break;
  }
  return "died";
}

fs::path find_sweep(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / kSweepFile, error) || SweepDirectory::is_held(directory)) return directory;
  if (!fs::is_directory(directory, error))
    throw DataError(fmt::format(
        "{}: {}; want the directory of a sweep, such as runs/NAME, or a log directory", directory.string(),
        fs::exists(directory, error) ? "is not a directory" : "is not there"));
  std::vector<std::string> found;
  add_running(directory, kMaxFolderLevels, found);
  if (found.empty())
    throw DataError(fmt::format("{}: no sweep is running in it; \"sweep status {}\" lists those there are",
                                directory.string(), directory.string()));
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
  return sweep_status(directory, SweepDirectory::is_held(directory));
}

SweepStatus sweep_status(const fs::path& directory, bool is_held) {
  SweepStatus status;
  status.directory = directory;
  if (has_runs(directory)) {
    for (const RunRecord& run : list_runs(directory)) {
      ++status.runs;
      ++status.statuses[run.status == RunStatus::kRunning && !is_held ? RunStatus::kInterrupted : run.status];
    }
  }
  if (is_held) status.progress = read_progress(directory);
  status.state = state_of(status, is_held);
  return status;
}

std::string status_text(const SweepStatus& status, const Terminal& terminal, HowToGoOn how_to_go_on) {
  const bool can_go_on = status.state == SweepState::kInterrupted || status.state == SweepState::kDied;
  const bool is_elsewhere = can_go_on && how_to_go_on == HowToGoOn::kSaidElsewhere;
  std::string text = fmt::format("{}: {}", printable(status.directory.string()),
                                 is_elsewhere ? "on a cluster" : to_string(status.state));
  const char* separator = ": ";
  for (const auto& [run_status, count] : status.statuses) {
    text += fmt::format("{}{} {}", separator, count, to_string(run_status));
    separator = ", ";
  }
  text += "\n";
  if (status.progress) {
    for (const std::string& line : live_table(*status.progress, terminal)) text += line + "\n";
  }
  if (can_go_on && !is_elsewhere)
    text += "To go on: " + shell_command({"sweep", "resume", status.directory.string()}) + "\n";
  return text;
}

Json to_json(const SweepStatus& status) {
  Json statuses = Json::object();
  for (const auto& [run_status, count] : status.statuses)
    statuses[std::string(to_string(run_status))] = count;
  return {{"sweep", fs::weakly_canonical(status.directory).filename().string()},
          {"directory", status.directory.string()},
          {"state", to_string(status.state)},
          {"runs", status.runs},
          {"statuses", std::move(statuses)},
          {"progress", status.progress ? to_json(*status.progress) : Json(nullptr)}};
}

}  // namespace sweep
