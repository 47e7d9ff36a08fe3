#include "runmanager/report/setting_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <span>

#include "core/base/text.h"
#include "runmanager/answers/statistics.h"
#include "runmanager/config/params.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/key_path.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPlaces = 12;  // values of a setting that each have their place

ChartAxis metric_axis(const ReportData& data, const std::string& metric,
                      const std::vector<std::size_t>& runs) {
  ChartAxis axis{metric_axis_title(metric), "linear", {}};
  if (metric.ends_with("accuracy")) axis.format = ".3~%";
  axis.is_down = !goal_for(metric_named(metric), data.goals).largest_is_best;
  for (const std::size_t run : runs) axis.values.emplace_back(*run_metric(data.records[run], metric));
  return axis;
}

// The values that each have their place: numbers in their order, texts in that of the runs.
Json places_of(const ChartAxis& axis) {
  Json places = Json::array();
  std::set<Json> different;
  for (const Json& value : axis.values) {
    if (!value.is_null() && different.insert(value).second) places.push_back(value);
  }
  return axis.format.empty() ? places : Json(different);
}

bool has_number(const RunRecord& run, const std::string& metric) {
  const std::optional<double> value = run_metric(run, metric);
  return value && std::isfinite(*value);
}

// A few trials far from all others would press those into a line.
std::optional<double> worst_shown(std::vector<double> values, const Goal& goal) {
  if (values.size() < 4) return {};
  std::ranges::sort(values, [&](double a, double b) { return goal.is_better(a, b); });
  const double best = values.front(), most = values[std::min(values.size() * 9 / 10, values.size() - 2)];
  const double far = values.size() < 20 ? 100 : 4;
  const bool is_far = std::abs(values.back() - best) > far * std::abs(most - best) && most != best;
  return is_far ? std::optional(best + 1.2 * (most - best)) : std::nullopt;
}

// The value of a parameter as the run had it: a path may be cut among its parameters, and a network is named
// there.
Json value_of(const RunRecord& run, const std::string& key, const ParamValue& param) {
  const JsonDocument config = document_of(run.config, run.name);
  Problems ignored;
  const std::optional<KeyPath> path =
      is_command_file(config) ? KeyPath{"params", key}
                              : resolve_key(key, JsonView(config).place(), KeyUse::kValue, ignored);
  const Json complete = path ? *find_path(config, *path) : Json();
  const bool is_name = complete.is_object() && key != "network" && !is_json_text(param);
  return complete.is_null() || is_name ? to_json(param) : complete;
}

std::optional<double> number_of(const Params& params, const std::string& key) {
  const ParamValue* const value = find_param(params, key);
  return value == nullptr ? std::nullopt : param_number(*value);
}

// Whether a number of a run is not always the one it began with.
bool changes(std::span<const Lineage> histories, const std::string& key) {
  return std::ranges::any_of(histories, [&](const Lineage& history) {
    return std::ranges::any_of(history, [&](const Ancestor& piece) {
      return number_of(piece.params, key) != number_of(history[0].params, key);
    });
  });
}

// Whether the search begins at points of its file, which other values of the axes would not have.
bool begins_at_points(const Json& file) { return file.value("search", Json()).contains("points"); }

// "lr=0.01"; a text that would be read as something else is in quotes.
std::string override_text(const std::string& key, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const bool is_plain =
      !text.empty() && !Json::accept(text) && text.find_first_of(",[]{}\"") == std::string::npos;
  return fmt::format("{}={}", key, is_plain ? text : value.dump());
}

}  // namespace

ChartAxis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs) {
  std::vector<Json> texts, numbers;
  std::set<double> different;
  bool are_numbers = true;
  for (const std::size_t run : runs) {
    const std::string text = setting_text(data.runs[run], key);
    std::optional<double> number = number_in<double>(text);
    if (number && !std::isfinite(*number)) number.reset();
    texts.emplace_back(text);
    numbers.push_back(chart_number(number));
    if (number) different.insert(*number);
    are_numbers = are_numbers && (number || text.empty());
  }
  if (!are_numbers || different.empty()) return {key, "point", std::move(texts), ""};
  const auto range = data.by_logarithm.find(key);
  const bool is_drawn = range != data.by_logarithm.end();
  if (!is_drawn && different.size() <= kMaxPlaces) return {key, "point", std::move(numbers), "~g"};
  const bool by_log =
      is_drawn ? range->second : *different.begin() > 0 && *different.rbegin() / *different.begin() >= 100;
  if (by_log) return {key, "log", std::move(numbers), "~g"};
  return {key, "linear", std::move(numbers)};
}

Coordinates coordinates_of(const ReportData& data) {
  Coordinates result{.axes = {{"axis", "title", "test"}},
                     .runs = {{"run", "label", "result", "value"}},
                     .scales = {},
                     .formats = {}};
  const std::string time = "epoch_seconds";
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status == RunStatus::kCompleted && has_number(record, data.metric) && has_number(record, time))
      runs.push_back(run);
  }
  for (const std::size_t run : runs) {
    const std::optional<double> value = run_metric(data.records[run], data.metric);
    result.runs.rows.push_back({run, run_label(data, run, true), metric_text(value, data.metric), *value});
  }
  std::vector<ChartAxis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  if (data.metric != time) axes.push_back(metric_axis(data, time, runs));
  axes.push_back(metric_axis(data, data.metric, runs));
  for (ChartAxis& axis : axes) {
    const std::string name = fmt::format("axis{}", result.scales.size());
    result.axes.rows.push_back({name, axis.title, axis.scale == "point" ? "E" : "R"});
    result.runs.columns.push_back(name);
    const Json field = {{"data", "runs"}, {"field", name}};
    result.scales.push_back({{"name", name},
                             {"type", axis.scale},
                             {"domain", axis.scale == "point" ? places_of(axis) : field},
                             {"range", {{{"signal", "height"}}, 0}},
                             {"zero", false},
                             {"nice", true},
                             {"reverse", axis.is_down}});
    result.formats.push_back(axis.format);
    for (std::size_t i = 0; i < runs.size(); ++i) result.runs.rows[i].push_back(std::move(axis.values[i]));
  }
  return result;
}

Trials trials_of(const ReportData& data) {
  Trials trials{.rows = {{"trial", "run", "label", "value", "text", "best", "ended", "is_best"}}, .axes = {}};
  if (!data.is_search) return trials;
  std::vector<std::size_t> runs;
  std::vector<double> values;
  std::optional<double> best;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    const std::optional<double> value = run_metric(record, data.metric);
    const bool has_ended = record.status == RunStatus::kCompleted || record.status == RunStatus::kPruned ||
                           record.status == RunStatus::kFailed;
    if (!has_ended || !value || !std::isfinite(*value)) continue;
    if (record.status == RunStatus::kCompleted && (!best || data.goals[0].is_better(*value, *best)))
      best = value;
    trials.rows.rows.push_back({run + 1, run, run_label(data, run, true), *value,
                                metric_text(value, data.metric), chart_number(best), to_string(record.status),
                                data.best == run});
    runs.push_back(run);
    values.push_back(*value);
  }
  trials.worst_shown = worst_shown(std::move(values), data.goals[0]);
  for (const std::string& key : data.keys) {
    trials.rows.columns.push_back(fmt::format("axis{}", trials.axes.size()));
    ChartAxis axis = setting_axis(data, key, runs);
    for (std::size_t i = 0; i < runs.size(); ++i) trials.rows.rows[i].push_back(std::move(axis.values[i]));
    trials.axes.push_back(std::move(axis));
  }
  return trials;
}

Schedules schedules_of(const ReportData& data) {
  Schedules schedules{.rows = {{"run", "label", "epoch", "is_best", "ended"}}, .axes = {}};
  std::vector<std::size_t> runs;
  std::vector<Lineage> histories;  // of each run, which itself comes last
  for (std::size_t run = 0; run < data.records.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.epochs.empty()) continue;
    runs.push_back(run);
    histories.push_back(lineage_of(record.config));
    histories.back().push_back({record.name, record.epochs.back().epoch, record.params});
  }
  std::vector<std::string> keys;
  std::ranges::copy_if(data.keys, std::back_inserter(keys),
                       [&](const std::string& key) { return changes(histories, key); });
  for (const std::string& key : keys) {
    schedules.rows.columns.push_back(fmt::format("axis{}", schedules.axes.size()));
    schedules.axes.push_back(setting_axis(data, key, runs));
  }
  if (keys.empty()) return schedules;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    int begin = 0;
    const auto add = [&](int epoch, const Params& params) {
      schedules.rows.rows.push_back({runs[i], run_label(data, runs[i], true), epoch, data.best == runs[i],
                                     to_string(data.records[runs[i]].status)});
      for (const std::string& key : keys)
        schedules.rows.rows.back().push_back(chart_number(number_of(params, key)));
    };
    for (const Ancestor& piece : histories[i]) {
      add(begin, piece.params);
      begin = piece.until;
    }
    add(begin, histories[i].back().params);
  }
  return schedules;
}

ChartTable importances_rows(const ReportData& data) {
  ChartTable table{{"row", "setting", "share", "text", "best", "may_be_chance"}};
  if (!data.importances) return table;
  for (const Importance& setting : data.importances->settings)
    table.rows.push_back({table.rows.size(), setting.key, setting.share, share_text(setting.share),
                          setting.best, setting.may_be_chance});
  return table;
}

std::string best_command(const ReportData& data) {
  if (!data.is_search || !data.best || data.directories.size() != 1) return "";
  const RunRecord& run = data.records[*data.best];
  // Settings of a population's last epochs alone are another training.
  if (run.config.is_object() && run.config.contains(kLineageKey)) return "";
  std::vector<std::string> words = {"sweep", (data.directories[0] / kSweepFile).string()};
  const bool is_program = run.config.is_object() && run.config.contains("command");
  Json point = Json::object();
  for (const auto& [key, value] : run.params) {
    if (key == kRepeatKey) continue;
    point[key] = value_of(run, key, value);
    // A program's parameter may have the name of a key of the file.
    words.push_back(override_text(is_program ? "params." + key : key, point[key]));
  }
  words.push_back("search.trials=1");
  if (begins_at_points(data.files[0])) words.push_back("search.points=" + Json::array({point}).dump());
  words.push_back(fmt::format("name={}-best", data.title));
  return shell_command(words);
}

}  // namespace sweep
