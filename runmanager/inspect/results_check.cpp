#include "runmanager/inspect/fsck.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/sweep/sweep_json.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxShown = 200;  // bytes of a value
constexpr std::string_view kIsMended = ": the sweep goes on or was killed; its next start mends this";

// A run in results.json.
struct ResultsRun {
  std::string name;
  RunStatus status = RunStatus::kPending;
  Json json;  // all that is there of it
};

// Whether the run may still change. Results are also written before a run ends, so for such a run other files
// may be newer.
bool is_open(RunStatus status) { return status == RunStatus::kPending || status == RunStatus::kRunning; }

// Whether the run's record may be newer than the results. A trial that waits for others is interrupted, and
// goes on before the results are written again; so does a finished run, for more epochs.
bool may_be_newer(const RunRecord& record, const ResultsRun& run) {
  const bool has_gone_on =
      record.status != run.status || record.epochs.size() > run.json.value("epochs", Json::array()).size();
  return is_open(run.status) || record.status == RunStatus::kRunning ||
         (run.status == RunStatus::kInterrupted && has_gone_on);
}

class ResultsChecker {
 public:
  ResultsChecker(const fs::path& directory, const ResultFiles& files, const RecordsByName& records)
      : directory_(directory), files_(files), records_(records) {}

  std::vector<FileFinding> check() {
    // A training loop of the user's own leaves only the results, and those only if it saves them.
    const bool has_json = files_.contains("results.json"), has_csv = files_.contains("results.csv"),
               is_run = fs::exists(directory_ / ".." / kSweepFile),
               has_sweep = files_.contains(kSweepFile) || (fs::exists(directory_ / kLockFile) && !is_run);
    if (has_sweep) check_file(kSweepFile, &ResultsChecker::check_sweep);
    // Before a first start has results, no run of it has a record.
    if ((has_sweep && !records_.empty()) || has_json || has_csv) {
      check_file("results.json", &ResultsChecker::check_json);
      check_file("results.csv", &ResultsChecker::check_csv);
    }
    check_missing_records();
    return std::move(findings_);
  }

 private:
  // Runs `check_text` on the file `name`. A file that is missing or cannot be parsed is damaged.
  void check_file(const std::string& name,
                  void (ResultsChecker::*check_text)(const std::string&, FileFinding&)) {
    FileFinding finding{.path = name};
    const auto file = files_.find(name);
    if (file == files_.end()) {
      finding.problems.emplace_back("is missing");
    } else if (!file->second.problem.empty()) {
      finding.problems.push_back(file->second.problem);
    } else {
      finding.bytes = file->second.text.size();
      try {
        (this->*check_text)(file->second.text, finding);
      } catch (const DataError& wrong) {
        finding.problems.emplace_back(wrong.what());
      } catch (const Json::exception& wrong) {
        finding.problems.push_back("cannot be parsed: " + json_reason(wrong));
      }
    }
    findings_.push_back(std::move(finding));
  }

  void check_sweep(const std::string& text, FileFinding& finding) {
    const Json json = parse_json_text(text, "the text");
    if (std::string problem = sweep_file_problem(text, json); !problem.empty())
      finding.problems.push_back(std::move(problem));
    else
      sweep_runs_ = json.at("runs").get<std::vector<std::string>>();
    const Json search = json.value("search", Json::object());
    const std::string method = search.value("method", "");
    chooses_trials_ = method == "tpe" || method == "population" || search.value("sampler", "") == "tpe";
  }

  void check_json(const std::string& text, FileFinding& finding) {
    const Json json = parse_json_text(text, "the text");
    if (!json.at("sweep").is_string()) throw DataError("\"sweep\" is no name");
    std::vector<ResultsRun> runs;
    for (const Json& run : json.at("runs")) {
      runs.push_back({run.at("name").get<std::string>(),
                      parse_run_status(run.at("status").get_ref<const std::string&>()), run});
    }
    results_ = std::move(runs);
    compare_with_sweep(finding);
    for (const ResultsRun& run : *results_) compare_with_record(run, finding);
    const std::optional<std::vector<RunRecord>> records = final_records();
    if (records && !finding.damaged() &&
        json_text(results_json(*records, json.at("sweep").get<std::string>())) != text)
      finding.problems.emplace_back("is not what the runs' records give");
  }

  // In the order of results.json. Nothing while a run may still change, or if a record is newer or lost.
  std::optional<std::vector<RunRecord>> final_records() const {
    std::vector<RunRecord> records;
    for (const ResultsRun& run : *results_) {
      const auto at = records_.find(run.name);
      if (at == records_.end() || !at->second || may_be_newer(*at->second, run)) return std::nullopt;
      records.push_back(*at->second);
    }
    return records;
  }

  void compare_with_sweep(FileFinding& finding) const {
    if (!sweep_runs_) return;
    std::vector<std::string> names;
    for (const ResultsRun& run : *results_) names.push_back(run.name);
    const auto [results_end, sweep_end] = std::ranges::mismatch(names, *sweep_runs_);
    const bool is_prefix = results_end == names.end() || sweep_end == sweep_runs_->end();
    // One of the two files is written before the other.
    if (chooses_trials_ && is_prefix && names.size() != sweep_runs_->size()) {
      finding.notes.push_back(
          fmt::format("has {} runs, sweep.json {}{}", names.size(), sweep_runs_->size(), kIsMended));
      return;
    }
    const std::set<std::string_view> has(names.begin(), names.end()),
        wanted(sweep_runs_->begin(), sweep_runs_->end());
    for (const std::string& name : *sweep_runs_)
      if (!has.contains(name))
        finding.problems.push_back(fmt::format("lacks the run {} of sweep.json", name));
    for (const std::string& name : names)
      if (!wanted.contains(name))
        finding.problems.push_back(fmt::format("has the run {}, which is not in sweep.json", name));
  }

  // With what the run's record gives.
  void compare_with_record(const ResultsRun& run, FileFinding& finding) const {
    const auto at = records_.find(run.name);
    if (at == records_.end() || !at->second) return;  // Reported with that file.
    const Json wanted = results_json({*at->second}, "").at("runs")[0];
    const Json changes = Json::diff(run.json, wanted);
    if (changes.empty()) return;
    const Json& change = changes[0];
    const auto place = change.at("path").get<std::string>();
    const auto shown = [](const Json& value) { return shown_text(value.dump(), kMaxShown); };
    const std::string difference =
        fmt::format("{} of {} is {}, its run.json gives {}", place, run.name,
                    change["op"] == "add" ? "missing" : shown(run.json.at(Json::json_pointer(place))),
                    change["op"] == "remove" ? "missing" : shown(change.at("value")));
    may_be_newer(*at->second, run) ? finding.notes.push_back(difference + std::string(kIsMended))
                                   : finding.problems.push_back(difference);
  }

  // The results are made again from the runs' records. While a run may still change, only whether they can be
  // read is checked: the next start writes them again.
  void check_csv(const std::string& text, FileFinding& finding) {
    const auto rows = parse_csv_text(text, "results.csv");
    if (text.empty() || text.back() != '\n') finding.problems.emplace_back("its last line is cut");
    const std::optional<std::vector<RunRecord>> records = results_ ? final_records() : std::nullopt;
    if (!records || rows.empty()) return;
    const std::string wanted = results_csv(*records, swept_keys(*records, rows[0]));
    if (wanted == text) return;
    const auto wanted_rows = parse_csv_text(wanted, "the runs' records");
    // Earlier versions called the columns of all parameters by their keys.
    auto earlier = wanted_rows[0];
    for (std::string& title : earlier) title = param_key(std::move(title));
    if (csv_row(earlier) + wanted.substr(csv_row(wanted_rows[0]).size()) == text) return;
    std::size_t row = 0;
    while (row < std::min(rows.size(), wanted_rows.size()) && rows[row] == wanted_rows[row]) ++row;
    const auto cells = [row](const auto& of) {
      return row < of.size() ? fmt::format("\"{}\"", fmt::join(of[row], ",")) : "missing";
    };
    finding.problems.push_back(
        fmt::format("row {} is {}, the runs' records give {}", row + 1, cells(rows), cells(wanted_rows)));
  }

  static std::string param_key(std::string title) {
    if (title.starts_with(kParamPrefix)) title.erase(0, kParamPrefix.size());
    return title;
  }

  // Their columns come after those of the epochs.
  static std::vector<std::string> swept_keys(const std::vector<RunRecord>& records,
                                             const std::vector<std::string>& header) {
    const std::size_t after = any_shared(records) ? 1 : 0;
    const std::size_t before =
        parse_csv_text(results_csv(records, {}), "the runs' records")[0].size() - after;
    std::vector<std::string> keys;
    for (std::size_t i = before; i + after < header.size(); ++i) keys.push_back(param_key(header[i]));
    return keys;
  }

  // Reports runs that have ended according to results.json but have no run.json.
  void check_missing_records() {
    if (!results_) return;
    for (const ResultsRun& run : *results_) {
      if (is_open(run.status) || records_.contains(run.name)) continue;
      const fs::path file = fs::path(run.name) / kRunRecordFile;
      std::error_code error;
      const std::string problem = !fs::exists(directory_ / file, error) && error
                                      ? "cannot be read: " + error.message()
                                      : fmt::format(
                                            "is missing, though results.json calls the run {}; its "
                                            "settings and reasons are lost",
                                            to_string(run.status));
      findings_.push_back({.path = file.string(), .problems = {problem}});
    }
  }

  const fs::path& directory_;
  const ResultFiles& files_;
  const RecordsByName& records_;
  std::vector<FileFinding> findings_;
  std::optional<std::vector<std::string>> sweep_runs_;
  bool chooses_trials_ = false;  // while others are trained, so that the sweep grows
  std::optional<std::vector<ResultsRun>> results_;
};

}  // namespace

ResultFiles read_result_files(const fs::path& directory) {
  ResultFiles files;
  // results.csv is written before results.json, and must not be older here.
  for (const char* name : {kSweepFile, "results.json", "results.csv"}) {
    if (!fs::exists(directory / name)) continue;
    try {
      files[name].text = read_file(directory / name);
    } catch (const DataError& wrong) {
      files[name].problem = wrong.what();
    }
  }
  return files;
}

std::vector<FileFinding> check_results(const fs::path& directory, const ResultFiles& files,
                                       const RecordsByName& records) {
  return ResultsChecker(directory, files, records).check();
}

}  // namespace sweep
