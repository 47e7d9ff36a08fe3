#include "runmanager/answers/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace sweep {

std::optional<MeanEstimate> mean_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanEstimate estimate{.count = values.size(), .mean = sum / count};
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  const double standard_error = std::sqrt(squares / (count - 1) / count);
  // Both tails together are the 5 % that the interval leaves out.
  const double half = standard_error * quantile(boost::math::students_t(count - 1), 0.975);
  estimate.interval = {estimate.mean - half, estimate.mean + half};
  return estimate;
}

std::optional<MeanEstimate> geometric_mean_of(std::span<const double> values) {
  std::vector<double> logarithms;
  for (const double value : values) {
    if (!(value > 0)) return std::nullopt;
    logarithms.push_back(std::log(value));
  }
  std::optional<MeanEstimate> estimate = mean_of(logarithms);
  if (!estimate) return std::nullopt;
  estimate->mean = std::exp(estimate->mean);
  if (estimate->interval)
    estimate->interval = {std::exp(estimate->interval->first), std::exp(estimate->interval->second)};
  return estimate;
}

}  // namespace sweep
