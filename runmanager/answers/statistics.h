// Means of samples, with their confidence intervals; numbers of statistics as people read them; and what the
// runs of a sweep say about one goal, in every form.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/terminal/table.h"

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

struct Answer {
  std::string text;             // the tables with their explanations; ends with a newline
  nlohmann::ordered_json json;  // everything, with the key of the goal's "metric"; null for what is not known
  std::vector<TextTable> tables;
};

/// A share from 0 to 1 as a table in `format` has it: "12.5%", in CSV plain.
inline std::string share_cell(double share, TableFormat format) {
  return format == TableFormat::kCsv ? fmt::format("{}", share) : share_text(share);
}

}  // namespace sweep
