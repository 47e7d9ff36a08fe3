#include "runmanager/records/measures.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace sweep {

Measures measures_of(const Totals& totals, double variation) {
  Measures measures;
  if (totals.ranked > 0)
    measures[0] = static_cast<double>(totals.in_top) / static_cast<double>(totals.ranked);
  if (totals.numbers == 0) return measures;
  const auto count = static_cast<double>(totals.numbers);
  measures[1] = totals.absolute_error / count;
  measures[kRmse] = std::sqrt(totals.squared_error / count);
  if (variation > 0) measures[3] = 1 - totals.squared_error / variation;
  return measures;
}

double target_variation(const Samples& samples) {
  if (samples.count == 0 || !are_numbers(samples.set->targets)) return 0;
  const std::size_t columns = samples.set->numbers().size() / samples.set->size();
  const auto targets = samples.set->numbers().subspan(samples.first * columns, samples.count * columns);
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

std::string measure_text(const Measure& measure, const std::optional<double>& value) {
  if (!value) return "";
  if (!std::isfinite(*value)) return fmt::format("{}", *value);
  return measure.is_share ? fmt::format("{:.2f}%", 100 * *value) : fmt::format("{:.4f}", *value);
}

}  // namespace sweep
