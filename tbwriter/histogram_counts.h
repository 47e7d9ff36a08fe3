// A histogram that the caller has computed.
#pragma once

#include <span>

namespace sweep::tbwriter {

/// A histogram that the caller has computed. Bucket i reaches from limits[i − 1] to limits[i].
struct HistogramCounts {
  double min = 0;     // of the finite values; not above max
  double max = 0;     // of the finite values
  double number = 0;  // of values: the sum of counts, or more if `sum` is not finite
  double sum = 0;     // not finite if one of the values is not; such values are in no bucket
  double sum_squares = 0;
  std::span<const double> limits = {};  // [buckets], upper limits, strictly increasing
  std::span<const double> counts = {};  // [buckets], >= 0
};

}  // namespace sweep::tbwriter
