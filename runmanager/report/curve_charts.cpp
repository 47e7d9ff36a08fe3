#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runmanager/records/repeats.h"
#include "runmanager/report/charts.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxQuantities = 12, kMaxPoints = 60'000, kFewestOfACurve = 30;

// What is measured of an epoch, and gets a chart of its own.
struct Quantity {
  std::string key, title;  // "loss", "Loss"
  bool is_share = false;
  std::vector<std::pair<const char*, const Metric*>> parts = {};  // "training", "validation"
};

// Those that any run has; people's own come last, by name, those of goals before the others.
std::vector<Quantity> quantities(const ReportData& data) {
  std::set<const Metric*> measured;
  std::map<std::pair<bool, std::string>, const Metric*> own;
  for (const RunRecord& run : data.records) {
    const std::optional<EpochRecord> latest = latest_values(run.epochs);
    if (!latest) continue;
    for (const auto& [metric, value] : latest->values) {
      measured.insert(metric);
      const bool is_goal = std::ranges::find(data.goals, metric, &Goal::metric) != data.goals.end();
      if (find_metric(metric->key) == nullptr) own.emplace(std::pair(!is_goal, metric->key), metric);
    }
  }
  std::vector<Quantity> list;
  for (const auto& [key, title] : {std::pair("loss", "Loss"), {"accuracy", "Accuracy"}, {"rmse", "RMSE"}}) {
    const Metric &training = metric_named(key), &validation = metric_named(std::string("validation_") + key);
    if (measured.contains(&training) || measured.contains(&validation))
      list.push_back({key,
                      title,
                      training.unit == MetricUnit::kShare,
                      {{"training", &training}, {"validation", &validation}}});
  }
  for (const auto& [place, metric] : own)
    list.push_back({place.second, place.second, metric->unit == MetricUnit::kShare, {{"reported", metric}}});
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

// Whether all of them have a number of the metric.
bool is_measured(const std::vector<const EpochRecord*>& epochs, const Metric& metric) {
  return std::ranges::all_of(epochs, [&metric](const EpochRecord* epoch) {
    return std::isfinite((*epoch)[metric].value_or(std::nan("")));
  });
}

// Adds the value of the series, or its mean and the mean less and plus the deviation.
void add_point(const SeriesEpochs::value_type& epochs, std::size_t series, const char* part,
               const Metric& metric, const std::string& measure, ChartTable& table) {
  std::vector<double> values;
  for (const EpochRecord* epoch : epochs.second) values.push_back((*epoch)[metric].value());
  std::vector<Json> row = {series, part, measure, epochs.first};
  if (values.size() == 1) {
    row.insert(row.end(), {values[0], nullptr, nullptr});
  } else {
    const Spread spread = spread_of(values);
    row.insert(row.end(), {spread.mean, spread.mean - spread.deviation, spread.mean + spread.deviation});
  }
  table.rows.push_back(std::move(row));
}

struct Curves {
  ChartTable points = {{"series", "part", "measure", "epoch", "value", "low", "high"}};
  bool are_steps = false;  // some of them
  std::size_t epochs = 0;  // most of any line
  std::size_t shown = 0;   // of these, most in `points`
};

Curves curves_of(const ReportData& data, const std::vector<CurveSeries>& series,
                 const std::vector<Quantity>& quantities) {
  const std::size_t lines = std::max<std::size_t>(1, series.size() * 2 * quantities.size());
  const std::size_t limit = std::max(kFewestOfACurve, kMaxPoints / lines);
  Curves curves;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SeriesEpochs epochs = epochs_of(data, series[i]);
    for (const auto& [position, of_runs] : epochs) {
      for (const EpochRecord* epoch : of_runs) curves.are_steps |= epoch->epoch != position;
    }
    for (const Quantity& quantity : quantities) {
      for (const auto& [part, metric] : quantity.parts) {
        // A metric of few steps would lose most of its values if those of all metrics were thinned.
        std::vector<const SeriesEpochs::value_type*> measured;
        for (const auto& epoch : epochs)
          if (is_measured(epoch.second, *metric)) measured.push_back(&epoch);
        const std::vector<std::size_t> positions = thinned(measured.size(), limit);
        curves.epochs = std::max(curves.epochs, measured.size());
        curves.shown = std::max(curves.shown, positions.size());
        for (const std::size_t position : positions)
          add_point(*measured[position], i, part, *metric, quantity.key, curves.points);
      }
    }
  }
  return curves;
}

// The setting that changes most, or the first one.
std::string colour_key(const ReportData& data) {
  if (data.importances) return data.importances->settings.front().key;
  if (!data.effects) return data.keys.empty() ? "" : data.keys.front();
  return sorted_effects(data, 1).front()->keys[0];
}

// What hovering and colours need. The group is the value of colour_key(), or the label without one.
ChartTable series_table(const ReportData& data, const std::vector<CurveSeries>& series) {
  ChartTable table{{"series", "label", "repeats", "group", "settings"}};
  const std::string key = colour_key(data);
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SourceRun& run = data.runs[series[i].runs.front()];
    Json settings = Json::object();
    for (const std::string& of_run : data.keys) settings[of_run] = setting_text(run, of_run);
    table.rows.push_back({i, series[i].label, series[i].meant.size(),
                          key.empty() ? series[i].label : setting_text(run, key), std::move(settings)});
  }
  return table;
}

// A diverging run would press all others to the ground: the value above which a chart is cut, if a few points
// are far above all others. Among few points the largest is cut only if it is out of all proportion.
std::optional<double> highest_shown(const ChartTable& points, const std::string& measure) {
  std::vector<double> values;
  for (const auto& row : points.rows) {
    if (row[2] == measure) values.push_back(row[4].get<double>());
  }
  if (values.size() < 3) return {};
  std::sort(values.begin(), values.end());
  const double most = values[std::min(values.size() * 95 / 100, values.size() - 2)];
  const double far = values.size() < 20 ? 100 : 5;
  return values.back() > far * most && most > 0 ? std::optional(1.5 * most) : std::nullopt;
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

void add_curves(const ReportData& data, Charts& charts) {
  const std::vector<CurveSeries> series = curve_series(data);
  std::vector<Quantity> shown = quantities(data);
  if (shown.size() > kMaxQuantities) {
    charts.remarks.push_back(fmt::format("Curves are those of {} metrics; {} others are left out.",
                                         kMaxQuantities, shown.size() - kMaxQuantities));
    shown.resize(kMaxQuantities);
  }
  Curves curves = curves_of(data, series, shown);
  if (curves.points.rows.empty()) return;
  const bool validated =
      std::ranges::any_of(curves.points.rows, [](const auto& row) { return row[1] == "validation"; });
  const std::string position = curves.are_steps ? "step" : "epoch";
  constexpr std::size_t kMaxWithTraining = 24;
  for (const auto& [key, title, is_share, parts] : shown) {
    Json signals = {{"measure", key},
                    {"position", position},
                    {"axisFormat", axis_format(is_share)},
                    {"numberFormat", is_share ? ".2%" : ".4~g"},
                    {"training", !validated || series.size() <= kMaxWithTraining},
                    {"validation", validated}};
    if (const auto highest = highest_shown(curves.points, key); highest && !is_share) {
      signals["highest"] = *highest;
      charts.remarks.push_back(fmt::format("{}: values above {:.3g} are not shown.", title, *highest));
    }
    Chart& chart =
        add_chart(charts, "curves", fmt::format("{} by {}, {} lines", title, position, series.size()),
                  {{"run", "label"},
                   {"part", "part"},
                   {position, "epoch"},
                   {"value", "value", is_share ? "share" : ""}},
                  signals);
    const bool is_own = find_metric(key) == nullptr;  // whose name may have any characters
    chart.id += is_own ? fmt::format("-own-{}", charts.charts.size() - 1) : "-" + key;
    chart.title = title;
  }
  if (curves.shown < curves.epochs)
    charts.remarks.push_back(
        fmt::format("Curves show {} of up to {} {}s, evenly spaced.", curves.shown, curves.epochs, position));
  charts.tables["series"] = series_table(data, series);
  charts.tables["points"] = std::move(curves.points);
}

}  // namespace sweep
