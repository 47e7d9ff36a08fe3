#include "runmanager/inspect/run_listing.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

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

std::vector<RunRecord> runs_of_sweep(const fs::path& directory) {
  const std::string path = (directory / kSweepFile).string();
  const Json file = read_json_file(path);
  if (!file.is_object()) throw DataError(path + ": is not the JSON that a sweep writes");
  std::vector<RunRecord> runs;
  for (const Json& name : file.value("runs", Json::array())) {
    if (!name.is_string()) throw DataError(path + ": \"runs\" is no list of names");
    const fs::path record = directory / name.get<std::string>() / kRunRecordFile;
    if (fs::exists(record)) {
      runs.push_back(read_run_record(record));
    } else {
      runs.emplace_back().name = name.get<std::string>();
    }
  }
  return runs;
}

}  // namespace

bool has_runs(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / kSweepFile, error) || !run_directories(directory).empty();
}

std::vector<RunRecord> list_runs(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / kSweepFile, error)) return runs_of_sweep(directory);
  std::vector<RunRecord> runs;
  for (const fs::path& run : run_directories(directory))
    runs.push_back(read_run_record(run / kRunRecordFile));
  std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) {
    return std::tie(a.started, a.name) < std::tie(b.started, b.name);
  });
  return runs;
}

std::vector<std::string> runs_no_longer_listed(const fs::path& directory) {
  std::error_code error;
  const fs::path file = directory / kSweepFile;
  if (!fs::exists(file, error)) return {};
  const Json sweep = read_json_file(file.string());
  const Json listed = sweep.is_object() ? sweep.value("runs", Json::array()) : Json::array();
  const std::set<Json> names(listed.begin(), listed.end());
  std::vector<std::string> others;
  for (const fs::path& run : run_directories(directory)) {
    const std::string name = run.filename().string();
    if (!names.contains(name) && !is_replaced_name(name)) others.push_back(name);
  }
  std::ranges::sort(others);
  return others;
}

Goals goals_of_sweep(const fs::path& directory, const std::vector<RunRecord>& runs) {
  const fs::path file = directory / kSweepFile;
  std::error_code error;
  Goals goals;
  if (fs::exists(file, error)) goals = recorded_goals(read_json_file(file.string()));
  return goals.empty() ? default_goals(runs) : goals;
}

bool is_search(const fs::path& directory) {
  const fs::path file = directory / kSweepFile;
  std::error_code error;
  if (!fs::exists(file, error)) return false;
  const Json sweep = read_json_file(file.string());
  const Json search = sweep.is_object() ? sweep.value("search", Json()) : Json();
  return search.is_object() && search.value("method", Json("grid")) != "grid";
}

RunRecord with_current_status(RunRecord run, const fs::path& sweep) {
  if (run.status != RunStatus::kRunning || !fs::exists(sweep / kSweepFile) || SweepDirectory::is_held(sweep))
    return run;
  run.status = RunStatus::kInterrupted;
  run.error = "its sweep ended without a word; the same command goes on";
  return run;
}

}  // namespace sweep
