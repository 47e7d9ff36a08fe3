#include "tbwriter/histogram.h"

#include <random>

#include "tbwriter/error.h"
#include "tests/support/test.h"

namespace sweep::tbwriter::histogram_test {

using ::testing::DoubleNear;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The definition: limits made as TensorFlow's and PyTorch's writers make them, every value compared with
// them.
struct Reference {
  std::vector<double> limits, counts;
};

Reference count_by_definition(const std::vector<double>& values) {
  std::vector<double> positive, edges;
  for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
  for (auto v = positive.rbegin(); v != positive.rend(); ++v) edges.push_back(-*v);
  edges.push_back(0);
  edges.insert(edges.end(), positive.begin(), positive.end());
  std::vector<double> counts(edges.size() - 1);
  for (const double value : values) {
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      if (edges[i] <= value && value < edges[i + 1]) ++counts[i];
    }
  }
  Reference reference;
  std::size_t first = 0, last = counts.size();
  while (first < last && counts[first] == 0) ++first;
  while (last > first && counts[last - 1] == 0) --last;
  for (std::size_t i = first; i < last; ++i) {
    if (i > first && counts[i] == 0 && counts[i - 1] == 0) {  // the same empty bucket
      reference.limits.back() = edges[i + 1];
      continue;
    }
    reference.limits.push_back(edges[i + 1]);
    reference.counts.push_back(counts[i]);
  }
  return reference;
}

template <class Value>
void expect_as_defined(const std::vector<Value>& values) {
  const Reference reference = count_by_definition({values.begin(), values.end()});
  const Histogram histogram = make_histogram(values);
  EXPECT_EQ(histogram.limits, reference.limits);
  EXPECT_EQ(histogram.counts, reference.counts);
}

TEST(MakeHistogram, PutsRandomValuesWhereTheDefinitionDoes) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> exponent(-13, 19);
  std::vector<float> values;
  std::vector<double> wide;
  for (int i = 0; i < 2001; ++i) {
    values.push_back(normal(random));
    wide.push_back((i % 2 == 0 ? 1 : -1) * std::pow(10.0, exponent(random)));
  }
  expect_as_defined(values);
  expect_as_defined(wide);
  expect_as_defined(std::vector<float>(wide.begin(), wide.end()));
}

TEST(MakeHistogram, PutsLimitsAndTheirNeighboursRight) {
  std::vector<double> values{0.0};
  std::vector<float> floats{0.0f};
  for (double limit = 1e-12; limit < 9e19; limit *= 1.1) {
    const auto near = static_cast<float>(limit);
    for (const int sign : {-1, 1}) {
      for (const double value : {std::nextafter(limit, 0.0), limit, std::nextafter(limit, 1e30)}) {
        values.push_back(sign * value);
      }
      for (const float value : {std::nextafter(near, 0.0f), near, std::nextafter(near, 1e30f)}) {
        floats.push_back(static_cast<float>(sign) * value);
      }
    }
  }
  expect_as_defined(values);
  expect_as_defined(floats);
}

TEST(MakeHistogram, SaysTheSums) {
  const std::vector<float> values{-1, 2, 0.5f, 0.25f, -3, 8, 1, 1, 1, 4};
  const Histogram histogram = make_histogram(values);
  EXPECT_EQ(histogram.number, 10);
  EXPECT_EQ(histogram.min, -3);
  EXPECT_EQ(histogram.max, 8);
  EXPECT_DOUBLE_EQ(histogram.sum, 13.75);
  EXPECT_DOUBLE_EQ(histogram.sum_squares, 97.3125);
}

TEST(MakeHistogram, OfOneValueHasOneBucketAroundIt) {
  for (const float value : {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, -1e-30f, 3e38f, -3e38f, 1e20f}) {
    const Histogram histogram = make_histogram(std::span<const float>(&value, 1));
    ASSERT_EQ(histogram.counts, std::vector<double>{1}) << value;
    EXPECT_EQ(histogram.min, value);
    EXPECT_EQ(histogram.max, value);
    EXPECT_GE(histogram.limits[0], value);
  }
}

TEST(MakeHistogram, PutsMinusZeroAndTheSmallestNegativeValuesOnTheirSides) {
  const std::vector<float> values{-0.0f, -0.0f, 0.0f, -1e-45f};
  const Histogram histogram = make_histogram(values);
  EXPECT_EQ(histogram.counts, (std::vector<double>{1, 3}));
  EXPECT_EQ(histogram.limits, (std::vector<double>{0, 1e-12}));
  expect_as_defined(values);
}

TEST(HistogramLimits, AreThoseOfEveryHistogram) {
  const std::vector<double> limits = histogram_limits(0);
  for (std::size_t i = 1; i < limits.size(); ++i) EXPECT_LT(limits[i - 1], limits[i]);
  EXPECT_EQ(limits.back(), 1e20);
  EXPECT_EQ(histogram_limits(1e300).back(), 1e300);
  std::vector<double> everywhere{-1e300, -1e20, -1e-300, 0, 1e-300, 1e19, 1e20, 1e300};
  for (std::size_t i = 1; i < limits.size(); ++i)
    everywhere.push_back(limits[i - 1]);  // a value in each bucket
  const Histogram histogram = make_histogram(everywhere);
  EXPECT_EQ(histogram.limits, histogram_limits(1e300));
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), everywhere.size());
}

TEST(MakeHistogram, CountsValuesThatAreNotFiniteOutsideTheBuckets) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{1, nan, inf, -inf, 2, -nan};
  const Histogram histogram = make_histogram(values);
  EXPECT_EQ(histogram.number, 6);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 2);
  EXPECT_EQ(histogram.min, 1);
  EXPECT_EQ(histogram.max, 2);
  EXPECT_TRUE(std::isnan(histogram.sum));
}

// A histogram that is right, changed by `change`.
Histogram checked(const std::function<void(Histogram&)>& change) {
  Histogram given{
      .max = 3, .number = 3, .sum = 6, .sum_squares = 14, .limits = {1, 2, 3}, .counts = {1, 0, 2}};
  change(given);
  return checked_histogram(given);
}

TEST(CheckedHistogram, MergesNeighbouringEmptyBucketsAndDropsThoseAtTheEnds) {
  const Histogram histogram = checked_histogram(
      {.max = 3, .number = 8, .limits = {-2, -1, 0, 1, 2, 3, 4, 5}, .counts = {0, 3, 0, 0, 0, 5, 0, 0}});
  EXPECT_THAT(histogram.limits, ElementsAre(-1, 2, 3));
  EXPECT_THAT(histogram.counts, ElementsAre(3, 0, 5));
  EXPECT_TRUE(checked_histogram({.limits = {1, 2}, .counts = {0, 0}}).counts.empty());
}

TEST(CheckedHistogram, TakesMoreValuesThanCountsOnlyIfSomeAreNotFinite) {
  EXPECT_NO_THROW(checked([](Histogram&) {}));
  for (const double sum : {kNan, -kInf}) {
    EXPECT_NO_THROW(checked([&](Histogram& given) {
      given.number = 5;
      given.sum = sum;
    }));
  }
}

TEST(CheckedHistogram, RefusesWhatNoValuesCanGive) {
  const auto refuses = [](const char* message, const std::function<void(Histogram&)>& change) {
    EXPECT_THAT(test::message_of<UsageError>([&] { checked(change); }), HasSubstr(message));
  };
  for (const std::vector<double>& limits :
       {std::vector<double>{1, kNan, 3}, {kNan, 2, 3}, {1, 2, kNan}, {1, 1, 3}, {1, 2}})
    refuses("limits that grow and are not NaN", [&](Histogram& given) { given.limits = limits; });
  refuses("not NaN", [](Histogram& given) {
    given.limits = {kNan};
    given.counts = {3};
  });
  for (const double count : {-1.0, kNan, kInf})
    refuses("counts are finite and >= 0", [&](Histogram& given) { given.counts[1] = count; });
  refuses("min 4.000000 is not at most its max 3.000000", [](Histogram& given) { given.min = 4; });
  refuses("not at most its max", [](Histogram& given) { given.max = kNan; });
  for (const double number : {2.0, 4.0, kNan})
    refuses("its counts sum up to 3.0", [&](Histogram& given) { given.number = number; });
  refuses("its counts sum up to 3.0", [](Histogram& given) {
    given.number = 2;
    given.sum = kNan;
  });
}

// Against numpy 2.4.6: numpy.histogram([i * i * 0.125 - 3 for i in range(25)], name)
TEST(HistogramBins, OfNumbersAreNumpys) {
  std::vector<double> values(25);
  for (int i = 0; i < 25; ++i) values[static_cast<std::size_t>(i)] = i * i * 0.125 - 3;
  const auto histogram = [&values](HistogramBins bins) { return make_histogram(values, bins); };
  for (const HistogramBins bins : {HistogramBins::kAuto, HistogramBins::kSturges}) {
    EXPECT_THAT(histogram(bins).counts, ElementsAre(10, 4, 3, 3, 2, 3));
    EXPECT_THAT(histogram(bins).limits, ElementsAre(9, 21, 33, 45, 57, 69));
  }
  EXPECT_THAT(histogram(HistogramBins::kFd).counts, ElementsAre(14, 6, 5));
  EXPECT_THAT(histogram(HistogramBins::kFd).limits, ElementsAre(21, 45, 69));
  EXPECT_THAT(histogram(HistogramBins::kDoane).counts, ElementsAre(10, 3, 3, 3, 2, 2, 2));
  EXPECT_THAT(histogram(HistogramBins::kDoane).limits,
              ElementsAre(7.2857142857142865, 17.571428571428573, 27.85714285714286, 38.142857142857146,
                          48.42857142857143, 58.71428571428572, 69.0));
  EXPECT_EQ(histogram(HistogramBins::kFd).sum, 537.5);
}

// numpy.histogram([i * 3 / 10 for i in range(n)], "fd"): the last bit of a width makes one bucket more or
// less.
TEST(HistogramBins, AreAsManyAsNumpysWhereRoundingDecides) {
  const auto counts = [](int n) {
    std::vector<double> values;
    for (int i = 0; i < n; ++i) values.push_back(i * 3 / 10.0);
    return make_histogram(values, HistogramBins::kFd).counts;
  };
  EXPECT_THAT(counts(8), ElementsAre(3, 2, 3));
  EXPECT_THAT(counts(27), ElementsAre(9, 9, 9));
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
  const Histogram histogram = make_histogram(std::vector<double>{1, kInf, 2, kNan}, HistogramBins::kSturges);
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

}  // namespace sweep::tbwriter::histogram_test
