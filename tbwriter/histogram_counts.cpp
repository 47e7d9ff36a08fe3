#include "tbwriter/histogram_counts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tbwriter/error.h"
#include "tbwriter/histogram.h"

namespace sweep::tbwriter {
namespace {

void check(const HistogramCounts& given) {
  const bool grows = std::ranges::adjacent_find(given.limits, [](double left, double right) {
                       return !(left < right);  // also where one of them is NaN
                     }) == given.limits.end();
  const bool has_nan = std::ranges::any_of(given.limits, [](double limit) { return std::isnan(limit); });
  if (given.limits.size() != given.counts.size() || !grows || has_nan) {
    throw UsageError("a histogram has " + std::to_string(given.limits.size()) + " limits and " +
                     std::to_string(given.counts.size()) +
                     " counts, but needs as many of both, and limits that grow and are not NaN");
  }
  double total = 0;
  for (const double count : given.counts) {
    if (!(count >= 0) || std::isinf(count))
      throw UsageError("a histogram has the count " + std::to_string(count) +
                       ", but counts are finite and >= 0");
    total += count;
  }
  if (!(given.min <= given.max)) {
    throw UsageError("a histogram's min " + std::to_string(given.min) + " is not at most its max " +
                     std::to_string(given.max));
  }
  // Weights of values need not be integers, so that sums of them have rounding errors.
  const double tolerance = 1e-9 * total;
  const bool has_others = !std::isfinite(given.sum);
  if (!(given.number >= total - tolerance) || (given.number > total + tolerance && !has_others)) {
    throw UsageError("a histogram has the number " + std::to_string(given.number) +
                     ", but its counts sum up to " + std::to_string(total) +
                     (has_others ? "" : " and its sum is finite"));
  }
}

}  // namespace

Histogram checked_histogram(const HistogramCounts& given) {
  check(given);
  Histogram histogram = {given.min, given.max, given.number, given.sum, given.sum_squares, {}, {}};
  for (std::size_t i = 0; i < given.counts.size(); ++i) histogram.append(given.limits[i], given.counts[i]);
  histogram.trim();
  return histogram;
}

}  // namespace sweep::tbwriter
