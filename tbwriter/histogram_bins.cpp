// Histograms with the buckets of numpy, or of the caller.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/histogram.h"

namespace sweep::tbwriter {
namespace {

constexpr double kMaxBuckets = 100'000;  // more than a person or a browser can use

// numpy.percentile(): linear between the two nearest values. `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double doane_width(const std::vector<double>& sorted, double n, double range) {
  double mean = 0, variance = 0, skewness = 0;
  for (const double value : sorted) mean += value / n;
  for (const double value : sorted) variance += (value - mean) * (value - mean) / n;
  const double sigma = std::sqrt(variance);
  if (n <= 2 || !(sigma > 0)) return 0;
  for (const double value : sorted) skewness += std::pow((value - mean) / sigma, 3) / n;
  const double spread = std::sqrt(6 * (n - 2) / ((n + 1) * (n + 3)));
  return range / (1 + std::log2(n) + std::log2(1 + std::abs(skewness) / spread));
}

double width_of(const std::vector<double>& sorted, HistogramBins bins) {
  const auto n = static_cast<double>(sorted.size());
  const double range = sorted.back() - sorted.front(), sturges = range / (std::log2(n) + 1);
  const double fd = 2 * (percentile(sorted, 0.75) - percentile(sorted, 0.25)) / std::cbrt(n);
  switch (bins) {
    case HistogramBins::kFd:
      return fd;
    case HistogramBins::kDoane:
      return doane_width(sorted, n, range);
    case HistogramBins::kSturges:
      return sturges;
    case HistogramBins::kAuto:
      break;
  }
  return std::min(std::max(fd, range / std::sqrt(n) / 2), sturges);
}

void check(const Histogram& given) {
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

Histogram make_histogram(const Values& values, HistogramBins bins) {
  Histogram histogram = make_histogram(values);  // for the sums
  histogram.limits.clear();
  histogram.counts.clear();
  std::vector<double> sorted = converted<double>(values);
  std::erase_if(sorted, [](double value) { return !std::isfinite(value); });
  if (sorted.empty()) return histogram;
  std::sort(sorted.begin(), sorted.end());
  double width = width_of(sorted, bins);
  const bool integers =
      std::visit([]<class Number>(std::span<const Number>) { return std::is_integral_v<Number>; }, values);
  if (integers && width > 0 && width < 1) width = 1;
  double first = sorted.front(), last = sorted.back();
  const double wanted = width > 0 ? std::ceil((last - first) / width) : 1;
  if (!(wanted <= kMaxBuckets)) {
    throw UsageError("a histogram of these values would have " + std::to_string(wanted) +
                     " buckets, but may have 100000; values far outside make so many: give other bins");
  }
  const auto count = static_cast<std::size_t>(std::max(wanted, 1.0));
  if (first == last) {  // as numpy does
    first -= 0.5;
    last += 0.5;
  }
  // Each bucket but the last is open at its right end. Its limits have the bits of numpy.linspace().
  const double step = (last - first) / static_cast<double>(count);
  auto begin = sorted.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const double limit = is_last ? last : first + static_cast<double>(i + 1) * step;
    const auto end = is_last ? sorted.end() : std::lower_bound(begin, sorted.end(), limit);
    histogram.append(limit, static_cast<double>(end - begin));
    begin = end;
  }
  histogram.trim();
  return histogram;
}

Histogram checked_histogram(const Histogram& given) {
  check(given);
  Histogram histogram = {given.min, given.max, given.number, given.sum, given.sum_squares, {}, {}};
  for (std::size_t i = 0; i < given.counts.size(); ++i) histogram.append(given.limits[i], given.counts[i]);
  histogram.trim();
  return histogram;
}

}  // namespace sweep::tbwriter
