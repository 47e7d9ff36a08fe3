#include "runmanager/report/curves_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runmanager/records/repeats.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  const char* name;
  const Metric* metric;
};

struct Quantity {
  CurveMeasure measure;
  std::vector<Part> parts;
};

Quantity quantity_of_networks(const std::string& key, const char* title) {
  const Metric& metric = metric_named(key);
  return {{key, title, metric.unit == MetricUnit::kShare},
          {{"training", &metric}, {"validation", &metric_named("validation_" + key)}}};
}

// Those that any run has; people's own come last, by name.
std::vector<Quantity> quantities(const ReportData& data) {
  std::set<const Metric*> measured;
  std::map<std::string, const Metric*> own;
  for (const RunRecord& run : data.records) {
    const std::optional<EpochRecord> latest = latest_values(run.epochs);
    if (!latest) continue;
    for (const auto& [metric, value] : latest->values) {
      measured.insert(metric);
      if (find_metric(metric->key) == nullptr) own.emplace(metric->key, metric);
    }
  }
  std::vector<Quantity> list = {quantity_of_networks("loss", "Loss"),
                                quantity_of_networks("accuracy", "Accuracy"),
                                quantity_of_networks("rmse", "RMSE")};
  std::erase_if(list, [&measured](const Quantity& quantity) {
    return std::ranges::none_of(quantity.parts,
                                [&](const Part& part) { return measured.contains(part.metric); });
  });
  for (const auto& [key, metric] : own) {
    if (list.size() == kMaxCurveMeasures) break;
    list.push_back({{key, key, metric->unit == MetricUnit::kShare}, {{"reported", metric}}});
  }
  return list;
}

// The positions of at most `limit` of `count` epochs: the first, the last, and evenly between.
std::vector<std::size_t> thinned(std::size_t count, std::size_t limit) {
  std::vector<std::size_t> positions;
  const std::size_t kept = std::min(count, limit);
  for (std::size_t i = 0; i < kept; ++i)
    positions.push_back(kept == 1 ? 0 : (i * (count - 1) + (kept - 1) / 2) / (kept - 1));
  return positions;
}

// The epochs that a value of a series can be made of: one of each of its runs, all at the same position.
using SeriesEpochs = std::vector<std::pair<std::int64_t, std::vector<const EpochRecord*>>>;

SeriesEpochs epochs_of(const ReportData& data, const CurveSeries& series) {
  const std::size_t count = series.meant.size();
  std::map<std::int64_t, std::vector<const EpochRecord*>> at;
  for (std::size_t i = 0; i < count; ++i) {
    for_each_epoch(data.records[series.meant[i]], [&](const EpochRecord& epoch) {
      auto& of_runs = at[position_of(epoch)];
      of_runs.resize(count, nullptr);
      of_runs[i] = &epoch;
    });
  }
  SeriesEpochs epochs;
  for (auto& [position, of_runs] : at) {
    if (std::find(of_runs.begin(), of_runs.end(), nullptr) == of_runs.end())
      epochs.emplace_back(position, std::move(of_runs));
  }
  return epochs;
}

void add_point(const SeriesEpochs::value_type& epochs, std::size_t series, const Part& part,
               const std::string& measure, ChartTable& table) {
  std::vector<double> values;
  for (const EpochRecord* epoch : epochs.second) {
    const std::optional<double> value = (*epoch)[*part.metric];
    if (!value || !std::isfinite(*value)) return;
    values.push_back(*value);
  }
  std::vector<Json> row = {series, part.name, measure, epochs.first};
  if (values.size() == 1) {
    row.insert(row.end(), {values[0], nullptr, nullptr});
  } else {
    const Spread spread = spread_of(values);
    row.insert(row.end(), {spread.mean, spread.mean - spread.deviation, spread.mean + spread.deviation});
  }
  table.rows.push_back(std::move(row));
}

// The runs of each combination. Labels would not do: their numbers are cut.
std::vector<std::vector<std::size_t>> combinations_of(const ReportData& data) {
  std::vector<Params> settings;
  for (const SourceRun& run : data.runs) {
    settings.push_back(run.record.params);
    settings.back().emplace_back(kSweepKey, run.source);
    settings.back().emplace_back("device", run.record.device);
  }
  std::vector<std::vector<std::size_t>> combinations;
  for (RepeatGroup& group : repeat_groups(settings)) combinations.push_back(std::move(group.runs));
  for (std::size_t run = 0; run < settings.size(); ++run) {
    if (find_param(settings[run], kRepeatKey) == nullptr) combinations.push_back({run});
  }
  std::ranges::sort(combinations);
  return combinations;
}

}  // namespace

std::vector<CurveSeries> curve_series(const ReportData& data) {
  std::vector<CurveSeries> series;
  for (const std::vector<std::size_t>& runs : combinations_of(data)) {
    CurveSeries one;
    for (const std::size_t run : runs) {
      if (data.records[run].epochs.empty()) continue;
      one.runs.push_back(run);
      if (data.records[run].status == RunStatus::kCompleted) one.meant.push_back(run);
    }
    if (one.runs.empty()) continue;
    if (one.meant.empty()) one.meant = one.runs;
    one.label = data.keys.empty() && runs.size() > 1 ? "mean of all repeats"
                                                     : run_label(data, one.runs.front(), false);
    series.push_back(std::move(one));
  }
  return series;
}

std::vector<CurveMeasure> curve_measures(const ReportData& data) {
  std::vector<CurveMeasure> measures;
  for (const Quantity& quantity : quantities(data)) measures.push_back(quantity.measure);
  return measures;
}

Curves curves_table(const ReportData& data, const std::vector<CurveSeries>& series, std::size_t most_points) {
  constexpr std::size_t kFewest = 30;
  const std::vector<Quantity> shown = quantities(data);
  const std::size_t lines = std::max<std::size_t>(1, series.size() * 2 * shown.size());
  const std::size_t limit = std::max(kFewest, most_points / lines);
  Curves curves{{{"series", "part", "measure", "epoch", "value", "low", "high"}}};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SeriesEpochs epochs = epochs_of(data, series[i]);
    const std::vector<std::size_t> positions = thinned(epochs.size(), limit);
    curves.epochs = std::max(curves.epochs, epochs.size());
    curves.shown = std::max(curves.shown, positions.size());
    for (const auto& [position, of_runs] : epochs) {
      for (const EpochRecord* epoch : of_runs) curves.are_steps |= epoch->epoch != position;
    }
    for (const Quantity& quantity : shown) {
      for (const Part& part : quantity.parts) {
        for (const std::size_t position : positions)
          add_point(epochs[position], i, part, quantity.measure.name, curves.points);
      }
    }
  }
  return curves;
}

ChartTable series_table(const ReportData& data, const std::vector<CurveSeries>& series,
                        const std::string& colour_key) {
  ChartTable table{{"series", "label", "repeats", "group", "settings"}};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SourceRun& run = data.runs[series[i].runs.front()];
    Json settings = Json::object();
    for (const std::string& key : data.keys) settings[key] = setting_text(run, key);
    table.rows.push_back({i, series[i].label, series[i].meant.size(),
                          colour_key.empty() ? series[i].label : setting_text(run, colour_key),
                          std::move(settings)});
  }
  return table;
}

}  // namespace sweep
