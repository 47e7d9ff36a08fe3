#include "runmanager/records/measured_metrics.h"

#include <cmath>
#include <limits>
#include <string>

namespace sweep {

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
