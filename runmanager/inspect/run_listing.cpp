#include "runmanager/inspect/run_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_directory.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<fs::path> run_directories(const fs::path& directory) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(it->path() / kRunRecordFile, ignored)) runs.push_back(it->path());
  }
  return runs;
}

// sweep.json; null if there is none.
Json sweep_file(const fs::path& directory) {
  const std::string path = (directory / kSweepFile).string();
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  Json file = read_json_file(path);
  if (!file.is_object()) throw DataError(path + ": is not the JSON that a sweep writes");
  return file;
}

std::vector<RunRecord> runs_in_file(const fs::path& directory, const Json& file) {
  std::vector<RunRecord> runs;
  for (const Json& name : file.value("runs", Json::array())) {
    if (!name.is_string())
      throw DataError((directory / kSweepFile).string() + ": \"runs\" is no list of names");
    const fs::path record = directory / name.get<std::string>() / kRunRecordFile;
    if (fs::exists(record)) {
      runs.push_back(read_run_record(record));
    } else {
      runs.emplace_back().name = name.get<std::string>();
    }
  }
  return runs;
}

std::vector<RunRecord> runs_as_started(const fs::path& directory) {
  struct Found {
    fs::file_time_type written;
    RunRecord run;
  };
  std::vector<Found> found;
  for (const fs::path& run : run_directories(directory)) {
    const fs::path file = run / kRunRecordFile;
    std::error_code ignored;
    found.push_back({fs::last_write_time(file, ignored), read_run_record(file)});
  }
  // Records have whole seconds: of quick runs, the one that ended first has started first.
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return std::tie(a.run.started, a.written, a.run.name) < std::tie(b.run.started, b.written, b.run.name);
  });
  std::vector<RunRecord> runs;
  for (Found& each : found) runs.push_back(std::move(each.run));
  return runs;
}

void set_current_status(RunRecord& run, bool is_held) {
  if (run.status == RunStatus::kInterrupted && is_held) run.status = RunStatus::kPending;
  if (run.status != RunStatus::kRunning || is_held) return;
  run.status = RunStatus::kInterrupted;
  run.error = "its sweep ended without a word; the same command goes on";
}

}  // namespace

bool has_runs(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / kSweepFile, error) || !run_directories(directory).empty();
}

RecordedSweep read_sweep(const fs::path& directory) {
  if (!has_runs(directory)) refuse_directory(directory, "holds no runs", "the directory of a sweep");
  RecordedSweep sweep{.file = sweep_file(directory), .runs = {}};
  sweep.runs = sweep.file.is_null() ? runs_as_started(directory) : runs_in_file(directory, sweep.file);
  return sweep;
}

std::vector<RunRecord> list_runs(const fs::path& directory) {
  return has_runs(directory) ? read_sweep(directory).runs : std::vector<RunRecord>();
}

std::vector<std::string> runs_no_longer_listed(const fs::path& directory, const Json& file) {
  if (file.is_null()) return {};
  const Json listed = file.value("runs", Json::array());
  const std::set<Json> names(listed.begin(), listed.end());
  std::vector<std::string> others;
  for (const fs::path& run : run_directories(directory)) {
    const std::string name = run.filename().string();
    if (!names.contains(name) && !is_replaced_name(name)) others.push_back(name);
  }
  std::ranges::sort(others);
  return others;
}

Goals goals_of(const RecordedSweep& sweep) { return default_goals(sweep.runs, recorded_goals(sweep.file)); }

bool is_search(const Json& file) {
  const Json search = file.is_object() ? file.value("search", Json()) : Json();
  return search.is_object() && search.value("method", Json("grid")) != "grid";
}

RecordedSweep read_current_sweep(const fs::path& directory, bool is_held) {
  RecordedSweep sweep = read_sweep(directory);
  if (!sweep.file.is_null())
    for (RunRecord& run : sweep.runs) set_current_status(run, is_held);
  return sweep;
}

RecordedSweep read_current_sweep(const fs::path& directory) {
  return read_current_sweep(directory, SweepDirectory::is_held(directory));
}

RunRecord read_current_run(const fs::path& run_directory) {
  const fs::path sweep = fs::absolute(run_directory) / "..";
  const bool is_held = SweepDirectory::is_held(sweep);
  RunRecord run = read_run_record(run_directory / kRunRecordFile);
  if (fs::exists(sweep / kSweepFile)) set_current_status(run, is_held);
  return run;
}

}  // namespace sweep
