// Means of samples, with their confidence intervals; and numbers of statistics as people read them.
#pragma once

#include <fmt/format.h>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
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

/// A share from 0 to 1: "12.5%".
inline std::string share_text(double share) { return fmt::format("{:.1f}%", 100 * share); }

/// A probability with four decimals, "< 0.0001" below them; `none` if there is none.
inline std::string p_text(const std::optional<double>& p, const char* none) {
  if (!p) return none;
  return *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

}  // namespace sweep
