#include "runmanager/records/run_metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace sweep {
namespace {

std::optional<double> steady_median(const RunRecord& run, const Metric& metric) {
  std::vector<double> values;
  for (std::size_t i = run.epochs.size() > 1 ? 1 : 0; i < run.epochs.size(); ++i) {
    if (const auto value = run.epochs[i][metric]) values.push_back(*value);
  }
  return median_of(std::move(values));
}

// The epochs of the run, the last of which is the one that counts.
std::span<const EpochRecord> up_to_result(const RunRecord& run) {
  const auto best = std::ranges::find(run.epochs, run.best_epoch.value_or(0), &EpochRecord::epoch);
  return {run.epochs.begin(), best == run.epochs.end() ? best : best + 1};
}

}  // namespace

std::optional<EpochRecord> result_values(const RunRecord& run) { return latest_values(up_to_result(run)); }

std::optional<double> run_metric(const RunRecord& run, const Metric& metric) {
  if (metric.key == "setup_seconds") return run.setup_seconds;
  if (metric.key == "run_seconds") return run.run_seconds;
  if (metric.part == MetricPart::kTime) return steady_median(run, metric);
  const std::span<const EpochRecord> epochs = up_to_result(run);
  for (std::size_t i = epochs.size(); i-- > 0;) {
    if (const auto value = epochs[i][metric]) return value;
  }
  const auto found = run.metrics.find(std::string(metric.key));
  if (found != run.metrics.end()) return found->second;
  if (metric.key == kParameters && run.provenance.contains(kParameters))
    return run.provenance.at(std::string(kParameters)).get<double>();
  return std::nullopt;
}

std::optional<double> run_metric(const RunRecord& run, std::string_view key) {
  return run_metric(run, metric_named(key));
}

std::vector<std::string> metric_names(const std::vector<const RunRecord*>& runs) {
  std::vector<std::string> names;
  const auto add = [&](const Metric& metric) {
    const bool has = std::ranges::any_of(
        runs, [&metric](const RunRecord* run) { return run_metric(*run, metric).has_value(); });
    if (has && std::ranges::find(names, metric.key) == names.end()) names.emplace_back(metric.key);
  };
  for (const bool times : {true, false}) {
    for (const Metric& metric : metrics()) {
      const bool is_time = metric.part == MetricPart::kTime;
      if (is_time == times && metric.part != MetricPart::kTest && metric.unit != MetricUnit::kCount)
        add(metric);
    }
  }
  for (const RunRecord* run : runs) {
    if (const auto epoch = result_values(*run)) {
      for (const auto& [metric, value] : epoch->values) {
        if (metric->column == 0) add(*metric);
      }
    }
    for (const auto& [name, value] : run->metrics) add(metric_named(name));
  }
  return names;
}

std::string param_title(const std::string& key, const std::vector<std::string>& others) {
  // A key with the prefix gets another one, so that keys can be told from titles.
  const bool is_taken = key.starts_with(kParamPrefix) || std::ranges::find(others, key) != others.end();
  return (is_taken ? std::string(kParamPrefix) : "") + key;
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<std::pair<const Metric*, double>> measured_metrics(const Totals& totals, double variation,
                                                               MetricPart part) {
  std::vector<std::pair<const Metric*, double>> values;
  const std::string prefix = part == MetricPart::kTest         ? "test_"
                             : part == MetricPart::kValidation ? "validation_"
                                                               : "";
  const auto add = [&](const char* key, double value) {
    if (const Metric* metric = find_metric(prefix + key)) values.emplace_back(metric, value);
  };
  const auto mean = [](double sum, std::int64_t count) {
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  };
  add("loss", mean(totals.loss, totals.samples));
  if (totals.numbers == 0) {
    add("accuracy", mean(static_cast<double>(totals.correct), totals.samples));
    add("number_correct", static_cast<double>(totals.correct));
  }
  if (totals.ranked > 0) add("top5_accuracy", mean(static_cast<double>(totals.in_top), totals.ranked));
  if (totals.numbers == 0) return values;
  add("mae", mean(totals.absolute_error, totals.numbers));
  add("rmse", std::sqrt(mean(totals.squared_error, totals.numbers)));
  if (variation > 0) add("r2", 1 - totals.squared_error / variation);
  return values;
}

double target_variation(const Subset& samples) {
  if (samples.count == 0 || !is_regression(samples.set->targets)) return 0;
  const std::size_t columns = samples.set->numbers().size() / samples.set->size();
  if (columns == 0) return 0;
  const std::vector<float> targets = samples.numbers();
  std::vector<double> means(columns);
  for (std::size_t i = 0; i < targets.size(); ++i) means[i % columns] += static_cast<double>(targets[i]);
  for (double& mean : means) mean /= static_cast<double>(samples.count);
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double deviation = static_cast<double>(targets[i]) - means[i % columns];
    sum += deviation * deviation;
  }
  return sum;
}

}  // namespace sweep
