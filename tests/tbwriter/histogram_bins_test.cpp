// Against numpy.histogram(values, bins=name) of numpy 2.4.6.
#include "tbwriter/histogram_bins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/histogram.h"

namespace sweep::tbwriter {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// numpy.histogram([i * i * 0.125 - 3 for i in range(25)], name)
TEST(HistogramBins, OfNumbersAreNumpys) {
  std::vector<double> values;
  for (int i = 0; i < 25; ++i) values.push_back(i * i * 0.125 - 3);
  const auto histogram = [&values](HistogramBins bins) { return make_histogram(values, bins); };
  for (const HistogramBins bins : {HistogramBins::kAuto, HistogramBins::kSturges}) {
    EXPECT_THAT(histogram(bins).counts, ElementsAre(10, 4, 3, 3, 2, 3));
    EXPECT_THAT(histogram(bins).limits, ElementsAre(9, 21, 33, 45, 57, 69));
  }
  EXPECT_THAT(histogram(HistogramBins::kFd).counts, ElementsAre(14, 6, 5));
  EXPECT_THAT(histogram(HistogramBins::kFd).limits, ElementsAre(21, 45, 69));
  EXPECT_THAT(histogram(HistogramBins::kDoane).counts, ElementsAre(10, 3, 3, 3, 2, 2, 2));
  EXPECT_THAT(histogram(HistogramBins::kDoane).limits,
              Pointwise(DoubleNear(1e-12), {7.2857142857142865, 17.571428571428573, 27.85714285714286,
                                            38.142857142857146, 48.42857142857143, 58.71428571428572, 69.0}));
  EXPECT_EQ(histogram(HistogramBins::kFd).sum, 537.5);
}

// numpy.histogram(numpy.array([0, 0, 1, 1, 1, 2, 3, 3, 9]), name), with neighbouring empty buckets as one
TEST(HistogramBins, OfIntegersAreNumpys) {
  const std::vector<std::int32_t> values = {0, 0, 1, 1, 1, 2, 3, 3, 9};
  const std::vector<std::int64_t> wide(values.begin(), values.end());
  for (const HistogramBins bins : {HistogramBins::kAuto, HistogramBins::kFd, HistogramBins::kSturges}) {
    EXPECT_THAT(make_histogram(values, bins).counts, ElementsAre(5, 3, 0, 1));
    EXPECT_THAT(make_histogram(values, bins).limits, Pointwise(DoubleNear(1e-12), {1.8, 3.6, 7.2, 9.0}));
    EXPECT_EQ(make_histogram(wide, bins).counts, make_histogram(values, bins).counts);
  }
  EXPECT_THAT(make_histogram(values, HistogramBins::kDoane).counts, ElementsAre(5, 1, 2, 0, 1));
}

TEST(HistogramBins, OfEqualValuesAreOneBucketAroundThem) {
  const Histogram histogram = make_histogram(std::vector<double>{2, 2, 2}, HistogramBins::kAuto);
  EXPECT_THAT(histogram.limits, ElementsAre(2.5));
  EXPECT_THAT(histogram.counts, ElementsAre(3));
}

TEST(HistogramBins, LeaveOutWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const Histogram histogram =
      make_histogram(std::vector<double>{1, inf, 2, std::nan("")}, HistogramBins::kSturges);
  EXPECT_EQ(histogram.number, 4);
  EXPECT_THAT(histogram.counts, ElementsAre(1, 1));
  EXPECT_TRUE(make_histogram(std::vector<float>{}, HistogramBins::kFd).counts.empty());
}

TEST(HistogramBins, RefuseMoreBucketsThanAnyoneCanUse) {
  std::vector<double> values(1000, 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e-6 * static_cast<double>(i);
  values.push_back(1e12);
  EXPECT_THROW(make_histogram(values, HistogramBins::kFd), UsageError);
}

}  // namespace
}  // namespace sweep::tbwriter
