#include "runmanager/report/curves_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

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

// The epochs of a run that a value of a series can be made of: one per run.
struct SeriesEpochs {
  std::vector<std::vector<EpochRecord>> of_runs;
  std::size_t count = 0;  // that all runs have
};

SeriesEpochs epochs_of(const ReportData& data, const CurveSeries& series) {
  SeriesEpochs epochs;
  for (const std::size_t run : series.runs) epochs.of_runs.push_back(all_epochs(data.records[run]));
  epochs.count = epochs.of_runs.front().size();
  for (const auto& of_run : epochs.of_runs) epochs.count = std::min(epochs.count, of_run.size());
  return epochs;
}

void add_point(const SeriesEpochs& epochs, std::size_t position, std::size_t series, const Part& part,
               const std::string& measure, ChartTable& table) {
  std::vector<double> values;
  for (const auto& of_run : epochs.of_runs) {
    const std::optional<double> value = of_run[position][*part.metric];
    if (!value || !std::isfinite(*value)) return;
    values.push_back(*value);
  }
  const int epoch = epochs.of_runs.front()[position].epoch;
  std::vector<Json> row = {series, part.name, measure, epoch};
  if (values.size() == 1) {
    row.insert(row.end(), {values[0], nullptr, nullptr});
  } else {
    const Spread spread = spread_of(values);
    row.insert(row.end(), {spread.mean, spread.mean - spread.deviation, spread.mean + spread.deviation});
  }
  table.rows.push_back(std::move(row));
}

}  // namespace

std::vector<CurveSeries> curve_series(const ReportData& data) {
  std::vector<CurveSeries> series;
  std::map<std::string, std::size_t> at;  // of the combination's label
  const bool repeats = has_repeats(data);
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (data.records[run].epochs.empty()) continue;
    std::string label = run_label(data, run, false);
    if (repeats) {
      const auto [found, is_new] = at.try_emplace(data.keys.empty() ? "" : label, series.size());
      if (!is_new) {
        series[found->second].runs.push_back(run);
        continue;
      }
      if (data.keys.empty()) label = "mean of all repeats";
    }
    series.push_back({{run}, std::move(label)});
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
    const std::vector<std::size_t> positions = thinned(epochs.count, limit);
    curves.epochs = std::max(curves.epochs, epochs.count);
    curves.shown = std::max(curves.shown, positions.size());
    for (const Quantity& quantity : shown) {
      for (const Part& part : quantity.parts) {
        for (const std::size_t position : positions)
          add_point(epochs, position, i, part, quantity.measure.name, curves.points);
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
    table.rows.push_back({i, series[i].label, series[i].runs.size(),
                          colour_key.empty() ? series[i].label : setting_text(run, colour_key),
                          std::move(settings)});
  }
  return table;
}

}  // namespace sweep
