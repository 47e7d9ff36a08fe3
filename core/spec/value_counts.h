// How the values of arrays are distributed: what a histogram is drawn from.
#pragma once

#include <cstdint>
#include <vector>

namespace sweep {

/// Of one array, counted in the buckets between n limits, which grow: bucket i of n + 1 has the finite values
/// v with limits[i - 1] <= v < limits[i]; the first is open below, the last above.
struct ValueCounts {
  std::int64_t number = 0;          // of all values; the finite ones are the sum of `buckets`
  double min = 0, max = 0;          // of the finite values; 0 if there are none
  double sum = 0, sum_squares = 0;  // of all values: infinite or NaN as soon as one of them is
  std::vector<std::uint32_t> buckets = {};
};

/// Of a network: one entry for each of Network::parameters().
struct ParameterCounts {
  std::vector<ValueCounts> values, gradients;
};

}  // namespace sweep
