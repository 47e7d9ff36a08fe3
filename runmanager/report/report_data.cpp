#include "runmanager/report/report_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/config/params.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// run.json gets its epochs at the end of a run. Until then they are in its checkpoint.
void add_checkpoint_epochs(const fs::path& sweep, RunRecord& run) {
  const fs::path checkpoint = sweep / run.name / kCheckpointFile;
  if (has_ended(run.status) || !run.epochs.empty() || !fs::exists(checkpoint)) return;
  try {
    RunRecord saved = read_checkpoint_record(checkpoint);
    run.untrained = saved.untrained;
    run.epochs = std::move(saved.epochs);
  } catch (const DataError&) {
    // It is being replaced, or damaged: then the report tells as much as there is.
  }
}

RecordedSweep current_sweep(const fs::path& directory) {
  RecordedSweep sweep = read_current_sweep(directory);
  for (RunRecord& run : sweep.runs) add_checkpoint_epochs(directory, run);
  return sweep;
}

// Which axes of a sweep file are ranges, and whether of logarithms.
std::map<std::string, bool> ranges_of(const nlohmann::ordered_json& file) {
  std::map<std::string, bool> ranges;
  const auto params = file.find("params");
  if (params == file.end()) return ranges;
  for (const auto& [key, axis] : params->items()) {
    if (axis.is_object() && !axis.empty()) ranges[key] = axis.begin().key().starts_with("log_");
  }
  return ranges;
}

bool has_results(const SourceRun& run) { return !run.record.epochs.empty() || !run.record.metrics.empty(); }

std::string title_of(const std::vector<SourceRun>& runs) {
  std::vector<std::string> names;
  for (const SourceRun& run : runs) {
    const std::string name = fs::weakly_canonical(run.source).filename().string();
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

void answer(ReportData& data) {
  const auto is_other = [&](const SourceRun& run) { return run.source != data.runs.front().source; };
  try {
    if (std::ranges::any_of(data.runs, is_other)) throw ConfigError("effects are computed within one sweep");
    if (data.is_search)
      data.importances = importances_of(data.records, data.goals[0]);
    else
      data.effects = effects_of(data.records, data.goals[0]);
  } catch (const ConfigError& error) {
    data.no_effects = error.what();
  }
  const std::vector<std::string> varying = varying_keys(data.runs);
  for (const char* key : {"device", "sweep"}) {
    if (std::find(varying.begin(), varying.end(), key) == varying.end()) continue;
    try {
      data.compared = compare_runs(data.runs, key, "");
    } catch (const ConfigError&) {
      // No run has a time to compare.
    }
    break;
  }
}

// Fractions of many digits with 4 of them: "0.003307741013633609" is read as 0.003308. Those that would be
// the same as others of their key stay.
std::map<SettingText, std::string> short_texts(const ReportData& data) {
  constexpr std::size_t kLong = 9;
  std::map<SettingText, std::set<std::string>> by_short;
  for (const std::string& key : data.keys) {
    for (const SourceRun& run : data.runs) {
      const std::string text = setting_text(run, key);
      const std::optional<double> number = number_in<double>(text);
      if (number && text.size() > kLong && text.find_first_of(".e") != std::string::npos)
        by_short[{key, fmt::format("{:.4g}", *number)}].insert(text);
    }
  }
  std::map<SettingText, std::string> texts;
  for (const auto& [setting, all] : by_short) {
    if (all.size() == 1) texts[{setting.first, *all.begin()}] = setting.second;
  }
  return texts;
}

}  // namespace

ReportData report_data_of(std::vector<SourceRun> runs, const Goals& goals, bool is_search) {
  ReportData data;
  data.is_search = is_search;
  data.runs = std::move(runs);
  for (const SourceRun& run : data.runs) data.records.push_back(run.record);
  data.title = title_of(data.runs);
  data.keys = differing_keys(data.runs, has_results);
  std::erase(data.keys, kRepeatKey);
  data.short_texts = short_texts(data);
  data.goals = default_goals(data.records, goals);
  data.best = best_run(data.records, data.goals);
  answer(data);
  return data;
}

ReportData read_report_data(const std::vector<fs::path>& directories) {
  std::vector<SourceRun> runs;
  std::vector<nlohmann::ordered_json> files;
  for (const fs::path& directory : directories) {
    RecordedSweep sweep = current_sweep(directory);
    std::ranges::move(source_runs(directory, std::move(sweep.runs)), std::back_inserter(runs));
    files.push_back(std::move(sweep.file));
  }
  // The goals of a sweep count if all sweeps have them.
  Goals goals = recorded_goals(files.front());
  for (const auto& file : files) {
    if (recorded_goals(file) != goals) goals.clear();
  }
  const bool is_one_search = files.size() == 1 && is_search(files.front());
  ReportData data = report_data_of(std::move(runs), goals, is_one_search);
  if (is_one_search) data.by_logarithm = ranges_of(files.front());
  data.directories = directories;
  data.files = std::move(files);
  return data;
}

std::string run_label(const ReportData& data, std::size_t run, bool repeats) {
  std::vector<std::string> parts;
  for (const std::string& key : data.keys) {
    const SettingText setting = {key, setting_text(data.runs[run], key)};
    if (setting.second.empty()) continue;  // It may depend on another.
    const auto found = data.short_texts.find(setting);
    parts.push_back(
        fmt::format("{}={}", key, found == data.short_texts.end() ? setting.second : found->second));
  }
  const std::string repeat = param_text(data.records[run].params, kRepeatKey);
  if (repeats && !repeat.empty()) parts.push_back(fmt::format("{}={}", kRepeatKey, repeat));
  return parts.empty() ? data.records[run].name : fmt::format("{}", fmt::join(parts, ", "));
}

void to_json(Json& json, const ChartTable& table) {
  json = {{"columns", table.columns}, {"rows", table.rows}};
}

Json chart_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

}  // namespace sweep
