#include "runmanager/inspect/results_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_files.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A run in results.json.
struct ResultsRun {
  std::string name;
  RunStatus status = RunStatus::kPending;
  Json epochs;
};

// Whether the run may still change. Results are written before a run ends, too, so for such a run other files
// may be newer.
bool is_open(RunStatus status) { return status == RunStatus::kPending || status == RunStatus::kRunning; }

// The cell of results.csv that belongs to a value of results.json.
std::string epoch_cell(const Json& epoch, const std::string& column) {
  const auto value = epoch.find(column);
  if (value == epoch.end() || value->is_null()) return "";
  return value->is_number_integer() ? value->dump() : csv_number(number_from_json(*value));
}

// How many columns of the header are an epoch's; the swept keys come after them, of which "loss" may be one.
// None if a column is missing: earlier versions had none of the test's.
std::optional<std::size_t> epoch_column_end(const std::vector<std::string>& header) {
  if (header.size() < 2 || header[0] != "run" || header[1] != "status") return std::nullopt;
  if (header.size() < 3 || header[2] != "epoch") return std::nullopt;
  std::size_t end = 3;
  for (const Metric* metric : epoch_metrics()) {
    if (metric->column > kLastCommonColumn) break;
    if (end < header.size() && header[end] == metric->key) {
      ++end;
    } else if (metric->part != MetricPart::kTest) {
      return std::nullopt;
    }
  }
  const auto is_occasional = [](const std::string& name) {
    const Metric* const metric = find_metric(name);
    return metric != nullptr && metric->column > kLastCommonColumn && metric->column <= kLastColumn;
  };
  while (end < header.size() && is_occasional(header[end])) ++end;
  return end;
}

class ResultsChecker {
 public:
  ResultsChecker(const fs::path& directory, const RecordsByName& records)
      : directory_(directory), records_(records) {}

  std::vector<FileFinding> check() {
    // A training loop of the user's own leaves only the results, and those only if it saves them.
    const bool has_json = fs::exists(directory_ / "results.json"),
               has_csv = fs::exists(directory_ / "results.csv"),
               has_sweep = fs::exists(directory_ / ".lock") || fs::exists(directory_ / "sweep.json");
    if (has_sweep) check_file("sweep.json", &ResultsChecker::check_sweep);
    if (has_sweep || has_json || has_csv) {
      check_file("results.json", &ResultsChecker::check_json);
      check_file("results.csv", &ResultsChecker::check_csv);
    }
    check_missing_records();
    return std::move(findings_);
  }

 private:
  // Reads the file `name` and runs `check_text` on it. A file that is missing or cannot be parsed is damaged.
  void check_file(const std::string& name,
                  void (ResultsChecker::*check_text)(const std::string&, FileFinding&)) {
    FileFinding finding{.path = name};
    std::error_code error;
    if (!fs::exists(directory_ / name, error)) {
      finding.problems.emplace_back("is missing");
    } else {
      try {
        const std::string text = read_file(directory_ / name);
        finding.bytes = text.size();
        (this->*check_text)(text, finding);
      } catch (const DataError& wrong) {
        finding.problems.emplace_back(wrong.what());
      } catch (const Json::exception& wrong) {
        finding.problems.push_back(fmt::format("cannot be parsed: {}", wrong.what()));
      }
    }
    findings_.push_back(std::move(finding));
  }

  void check_sweep(const std::string& text, FileFinding&) {
    const Json json = parse_json_text(text, "the text");
    sweep_runs_ = json.at("runs").get<std::vector<std::string>>();
  }

  void check_json(const std::string& text, FileFinding& finding) {
    const Json json = parse_json_text(text, "the text");
    if (!json.at("sweep").is_string()) throw DataError("\"sweep\" is no name");
    std::vector<ResultsRun> runs;
    for (const Json& run : json.at("runs")) {
      runs.push_back({run.at("name").get<std::string>(),
                      parse_run_status(run.at("status").get_ref<const std::string&>()), run.at("epochs")});
    }
    results_ = std::move(runs);
    compare_with_sweep(finding);
    for (const ResultsRun& run : *results_) compare_with_record(run, finding);
  }

  void compare_with_sweep(FileFinding& finding) const {
    if (!sweep_runs_) return;
    for (const std::string& name : *sweep_runs_) {
      if (find_result(name) == nullptr)
        finding.problems.push_back(fmt::format("lacks the run {} of sweep.json", name));
    }
    for (const ResultsRun& run : *results_) {
      if (std::find(sweep_runs_->begin(), sweep_runs_->end(), run.name) == sweep_runs_->end())
        finding.problems.push_back(fmt::format("has the run {}, which is not in sweep.json", run.name));
    }
  }

  void compare_with_record(const ResultsRun& run, FileFinding& finding) const {
    const auto at = records_.find(run.name);
    if (at == records_.end() || !at->second) return;  // Reported with that file.
    const RunRecord& record = *at->second;
    std::string difference;
    if (record.status != run.status) {
      difference = fmt::format("says {} is {}, its run.json {}", run.name, to_string(run.status),
                               to_string(record.status));
    } else if (const std::size_t epochs = record.epochs.size() + (record.untrained ? 1 : 0);
               epochs != run.epochs.size()) {
      difference = fmt::format("has {} epochs of {}, its run.json {}", run.epochs.size(), run.name, epochs);
    }
    if (difference.empty()) return;
    if (is_open(run.status)) {
      finding.notes.push_back(difference + ": the sweep goes on or was killed; its next start mends this");
    } else {
      finding.problems.push_back(std::move(difference));
    }
  }

  void check_csv(const std::string& text, FileFinding& finding) {
    const auto rows = parse_csv_text(text, "results.csv");
    const std::optional<std::size_t> end = rows.empty() ? std::nullopt : epoch_column_end(rows[0]);
    if (!end) {
      std::vector<std::string> wanted = {"run", "status", "epoch"};
      for (const Metric* metric : epoch_metrics()) {
        if (metric->column <= kLastCommonColumn) wanted.emplace_back(metric->key);
      }
      finding.problems.push_back(fmt::format("its columns are not {}, …", fmt::join(wanted, ", ")));
      return;
    }
    if (text.back() != '\n') finding.problems.emplace_back("its last line is cut");
    std::map<std::string, std::vector<const std::vector<std::string>*>> by_run;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i].size() != rows[0].size()) {
        finding.problems.push_back(
            fmt::format("row {} has {} cells, the header {}", i + 1, rows[i].size(), rows[0].size()));
        continue;
      }
      if (rows[i][1] == kMeanStatus || rows[i][1] == kDeviationStatus) continue;
      by_run[rows[i][0]].push_back(&rows[i]);
      if (results_ && find_result(rows[i][0]) == nullptr)
        finding.problems.push_back(
            fmt::format("row {} is of {}, which is not in results.json", i + 1, rows[i][0]));
    }
    if (!results_) return;
    for (const ResultsRun& run : *results_) {
      const std::string difference = csv_difference(run, rows[0], *end, by_run[run.name]);
      if (difference.empty()) continue;
      (is_open(run.status) ? finding.notes : finding.problems).push_back(difference);
    }
  }

  // Describes the first difference between the rows of a run and results.json; "" if there is none.
  // The first `end` columns are compared.
  static std::string csv_difference(const ResultsRun& run, const std::vector<std::string>& header,
                                    std::size_t end,
                                    const std::vector<const std::vector<std::string>*>& rows) {
    if (rows.size() != std::max<std::size_t>(1, run.epochs.size()))
      return fmt::format("has {} rows of {}, results.json {} epochs", rows.size(), run.name,
                         run.epochs.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if ((*rows[i])[1] != to_string(run.status))
        return fmt::format("says {} is {}, results.json {}", run.name, (*rows[i])[1], to_string(run.status));
      for (std::size_t c = 2; i < run.epochs.size() && c < end; ++c) {
        const std::string json = epoch_cell(run.epochs[i], header[c]), &csv = (*rows[i])[c];
        if (json != csv)
          return fmt::format("{} of {}, epoch {}: is \"{}\", in results.json \"{}\"", header[c], run.name,
                             epoch_cell(run.epochs[i], "epoch"), csv, json);
      }
    }
    return "";
  }

  // Reports runs that have ended according to results.json but have no run.json.
  void check_missing_records() {
    if (!results_) return;
    for (const ResultsRun& run : *results_) {
      if (is_open(run.status) || records_.contains(run.name)) continue;
      findings_.push_back({.path = (fs::path(run.name) / kRunRecordFile).string(),
                           .problems = {fmt::format("is missing, though results.json calls the run {}; its "
                                                    "settings and reasons are lost",
                                                    to_string(run.status))}});
    }
  }

  const ResultsRun* find_result(const std::string& name) const {
    if (!results_) return nullptr;
    const auto at = std::find_if(results_->begin(), results_->end(),
                                 [&name](const ResultsRun& run) { return run.name == name; });
    return at == results_->end() ? nullptr : &*at;
  }

  const fs::path& directory_;
  const RecordsByName& records_;
  std::vector<FileFinding> findings_;
  std::optional<std::vector<std::string>> sweep_runs_;
  std::optional<std::vector<ResultsRun>> results_;
};

}  // namespace

std::vector<FileFinding> check_results(const fs::path& directory, const RecordsByName& records) {
  return ResultsChecker(directory, records).check();
}

}  // namespace sweep
