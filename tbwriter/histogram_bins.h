// How many buckets a histogram has, by the names of numpy.histogram(bins=…), which PyTorch's writer takes as
// well.
#pragma once

namespace sweep::tbwriter {

/// Buckets of equal width from the least to the largest finite value, as many as numpy 2 chooses for the
/// name.
enum class HistogramBins {
  kAuto,     // the smaller width of sturges, and of fd but at least half of what sqrt(n) buckets have
  kFd,       // Freedman and Diaconis: width 2 · interquartile range / n^(1/3)
  kDoane,    // sturges, with more buckets for skewed values
  kSturges,  // log2(n) + 1 buckets
};

}  // namespace sweep::tbwriter
