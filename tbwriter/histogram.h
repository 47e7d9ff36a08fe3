// Histograms with the buckets of TensorFlow's and PyTorch's writers, of numpy, or of the caller.
#pragma once

#include <vector>

#include "tbwriter/values.h"

namespace sweep::tbwriter {

/// A histogram: bucket i reaches from limits[i − 1] (the first one from min) to limits[i] (the last one to
/// max). As TensorBoard gets it, there are no empty buckets at the ends, and no two next to each other:
/// merging them changes neither a chart nor a quantile, and makes files three times as small.
struct Histogram {
  double min = 0, max = 0;          // of the finite values; 0 if there are none
  double number = 0;                // of all values
  double sum = 0, sum_squares = 0;  // of all values, so not finite if one of them is not
  std::vector<double> limits = {};  // upper limits, strictly increasing
  std::vector<double> counts = {};  // [limits], of the finite values

  /// Adds the next bucket. Empty ones are dropped at the beginning, and merged elsewhere.
  void append(double limit, double count) {
    if (count == 0 && (counts.empty() || counts.back() == 0)) {
      if (!counts.empty()) limits.back() = limit;
      return;
    }
    limits.push_back(limit);
    counts.push_back(count);
  }
  /// Removes the empty bucket that append() may have left at the end.
  void trim() {
    if (counts.empty() || counts.back() != 0) return;
    limits.pop_back();
    counts.pop_back();
  }
};

/// How many buckets a histogram has, by the names of numpy.histogram(bins=…), which PyTorch's writer takes as
/// well: buckets of equal width from the least to the largest finite value, as many as numpy 2 chooses.
enum class HistogramBins {
  kAuto,     // the smaller width of sturges, and of fd but at least half of what sqrt(n) buckets have
  kFd,       // Freedman and Diaconis: width 2 · interquartile range / n^(1/3)
  kDoane,    // sturges, with more buckets for skewed values
  kSturges,  // log2(n) + 1 buckets
};

/// The upper limits of all buckets of make_histogram() for values up to `max`, so that the same histogram can
/// be computed elsewhere: a finite value belongs to the first bucket whose limit is greater; values from the
/// last limit but one on belong to the last bucket. Only the last limit depends on `max`. This and the
/// functions below are thread-safe.
std::vector<double> histogram_limits(double max);

/// Counts `values` in buckets, each 10 % wider than the one before. The bits of all sums are the
/// same on every machine.
Histogram make_histogram(const Values& values);

/// The same with buckets of equal width. Throws UsageError for more than 100,000 buckets.
Histogram make_histogram(const Values& values, HistogramBins bins);

/// Removes and merges empty buckets of the caller's histogram. Throws UsageError if limits do not strictly
/// increase or are NaN, limits and counts differ in number, a count is negative or not finite, min is above
/// max, or the number is not the sum of the counts (or below it, if the sum is not finite).
Histogram checked_histogram(const Histogram& given);

}  // namespace sweep::tbwriter
