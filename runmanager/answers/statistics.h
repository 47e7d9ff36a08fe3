// Means of samples, with their confidence intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sweep {

/// A mean with the interval that holds the true one with a probability of 95 %, by Student's t distribution.
struct MeanEstimate {
  std::size_t count = 0;
  double mean = 0;
  std::optional<std::pair<double, double>> interval{};  // needs two values
};

/// The arithmetic mean. None for no values; all have to be finite.
std::optional<MeanEstimate> mean_of(std::span<const double> values);

/// The geometric mean; the interval is that of the logarithms. None for no values, or if one is not above 0.
std::optional<MeanEstimate> geometric_mean_of(std::span<const double> values);

}  // namespace sweep
