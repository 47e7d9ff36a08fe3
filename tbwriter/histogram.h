// Counts values in the buckets of TensorFlow's and PyTorch's writers. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbwriter/values.h"

namespace sweep::tbwriter {

/// Buckets as TensorBoard reads them: bucket i reaches from limits[i - 1] (the first from min) to limits[i]
/// (the last to max). No empty buckets at the ends. Without values, all is zero and empty.
struct Histogram {
  double min = 0, max = 0;          // of the finite values
  double number = 0;                // of all values
  double sum = 0, sum_squares = 0;  // of all values, so NaN once there is one
  std::vector<double> limits;
  std::vector<double> counts;  // finite values only
};

/// As in summary_writer.h.
std::vector<double> histogram_limits(double max);

Histogram make_histogram(std::span<const float> values);
Histogram make_histogram(std::span<const double> values);
Histogram make_histogram(Values values);

}  // namespace sweep::tbwriter
