// The runs that a report is about, and the facts and the form of tables that several of its parts use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/answers/comparison.h"
#include "runmanager/answers/effects.h"
#include "runmanager/answers/importances.h"
#include "runmanager/answers/source_runs.h"
#include "runmanager/records/judge.h"

namespace sweep {

using SettingText = std::pair<std::string, std::string>;  // a key, and its value

struct ReportData {
  std::vector<std::filesystem::path> directories;  // of the sweeps
  std::vector<nlohmann::ordered_json> files;       // the sweep.json of each; null for one that has none
  std::string title;                               // "fashion", or "fashion and mnist"
  std::vector<SourceRun> runs;     // all runs, with the status they have now and the epochs that are known
  std::vector<RunRecord> records;  // of `runs`
  std::vector<std::string> keys;   // what differs between the runs that have results, without the repeat
  std::map<SettingText, std::string> short_texts;  // what labels have in place of long numbers
  Goals goals;                                     // by which runs are judged
  std::optional<std::size_t> best;                 // of `runs`
  std::optional<Effects> effects;                  // of all runs of one sweep; none if they cannot be told
  std::string no_effects;                          // why not; "" if there are
  bool is_search = false;  // one sweep, whose trials are no complete grid: then there are no effects
  std::map<std::string, bool> by_logarithm;  // keys that are ranges of the search: whether of logarithms
  std::optional<Importances> importances;    // of a search, once enough trials have ended
  std::optional<Comparison> compared;        // in the seconds of an epoch or run: devices, else sweeps

  /// The metric of the first goal.
  const Metric& metric() const { return *goals[0].metric; }
};

/// Reads the sweeps in `directories`. Throws DataError if one of them holds no runs or cannot be read.
ReportData read_report_data(const std::vector<std::filesystem::path>& directories);

/// The same for runs that have been read. `goals`: as asked for, completed by default_goals(). `is_search`:
/// of one sweep.
ReportData report_data_of(std::vector<SourceRun> runs, const Goals& goals = {}, bool is_search = false);

/// "lr=0.01, batch_size=100": what distinguishes runs[run] from the others; its name if nothing does.
/// `repeats`: also the number of the repeat.
std::string run_label(const ReportData& data, std::size_t run, bool repeats);

/// Named columns, and a value per column in each row: a text, a number, a boolean, or null.
struct ChartTable {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::ordered_json>> rows = {};
};

/// {"columns": […], "rows": [[…], …]}: short for large tables.
void to_json(nlohmann::ordered_json& json, const ChartTable& table);

/// The number, or null for none and for what no chart can show: NaN and infinities.
nlohmann::ordered_json chart_number(const std::optional<double>& value);

}  // namespace sweep
