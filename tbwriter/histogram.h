// Histograms with the buckets of TensorFlow's and PyTorch's writers. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbwriter/histogram_bins.h"
#include "tbwriter/histogram_counts.h"
#include "tbwriter/values.h"

namespace sweep::tbwriter {

/// A histogram as TensorBoard stores it: bucket i reaches from limits[i − 1] (the first one from
/// min) to limits[i] (the last one to max). There are no empty buckets at the ends, and no two next to each
/// other: merging them changes neither a chart nor a quantile, and makes files three times as small. Without
/// finite values, there are no buckets.
struct Histogram {
  double min = 0, max = 0;          // of the finite values; 0 without any
  double number = 0;                // of all values
  double sum = 0, sum_squares = 0;  // of all values, so not finite if one of them is not
  std::vector<double> limits;
  std::vector<double> counts;  // [limits], of the finite values

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

/// The histogram with the caller's counts. Throws UsageError as SummaryWriter::add_histogram_counts() does.
Histogram checked_histogram(const HistogramCounts& given);

/// See summary_writer.h.
std::vector<double> histogram_limits(double max);

/// Counts `values`. The bits of all sums are the same on every machine. Thread-safe.
Histogram make_histogram(std::span<const float> values);
Histogram make_histogram(std::span<const double> values);
Histogram make_histogram(Values values);

/// The same with buckets of equal width. Throws UsageError for more than 100,000 buckets.
Histogram make_histogram(Values values, HistogramBins bins);

}  // namespace sweep::tbwriter
