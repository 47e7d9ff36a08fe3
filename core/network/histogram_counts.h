// The distribution of the values of arrays, for histograms.
#pragma once

#include <cstdint>
#include <vector>

namespace sweep {

/// The values of one array, counted between n increasing limits: bucket i of n + 1 counts the finite values v
/// with limits[i − 1] <= v < limits[i]; the first bucket has no lower limit, the last no upper one.
struct HistogramCounts {
  std::int64_t number = 0;          // of all values; the sum of `buckets` is the number of finite ones
  double min = 0, max = 0;          // of the finite values; 0 if there are none
  double sum = 0, sum_squares = 0;  // of all values; not finite if one of them is not
  std::vector<std::uint32_t> buckets = {};
};

/// The parameters of a network and their gradients: one entry for each of Network::parameters().
struct ParameterCounts {
  std::vector<HistogramCounts> values, gradients;
};

}  // namespace sweep
