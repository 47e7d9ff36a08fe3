// The CUDA engine's histogram counts against those of the TensorBoard writer for the same values.
#include "core/kernels/cuda/kernels/value_counter.h"

#include <random>

#include "tbwriter/histogram.h"
#include "tests/core/kernels/cuda/kernels/any_device.h"

namespace sweep::cuda::value_counter_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> inner_limits() {
  std::vector<double> limits = tbwriter::histogram_limits(0);
  limits.pop_back();
  return limits;
}

std::vector<HistogramCounts> count(const std::vector<std::vector<float>>& arrays,
                                   std::span<const double> limits = inner_limits()) {
  Stream stream;
  std::vector<Array<float>> memory;
  std::vector<CountedArray> counted;
  for (const std::vector<float>& values : arrays) {
    const Array<float>& own = memory.emplace_back(values.size(), "a test");
    if (!values.empty()) stream.upload(own.data(), values.data(), values.size() * sizeof(float));
    counted.push_back({own.data(), static_cast<int>(values.size())});
  }
  return ValueCounter(stream, counted, limits).count(stream);
}

// The buckets in the form in which the writer stores them.
tbwriter::Histogram listed(const HistogramCounts& counts) {
  const std::vector<double> limits = tbwriter::histogram_limits(counts.max);
  tbwriter::Histogram histogram;
  for (std::size_t i = 0; i < counts.buckets.size(); ++i)
    histogram.append(limits[i], static_cast<double>(counts.buckets[i]));
  histogram.trim();
  return histogram;
}

void expect_sum(double sum, double expected, double of_magnitudes) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(sum)) << sum;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(sum, expected);
  } else {
    EXPECT_NEAR(sum, expected, 1e-12 * of_magnitudes);
  }
}

void expect_as_the_writer_counts(const HistogramCounts& counts, const std::vector<float>& values) {
  const tbwriter::Histogram expected = tbwriter::make_histogram(std::span<const float>(values));
  const tbwriter::Histogram own = listed(counts);
  EXPECT_EQ(own.limits, expected.limits);
  EXPECT_EQ(own.counts, expected.counts);
  EXPECT_EQ(static_cast<double>(counts.number), expected.number);
  EXPECT_EQ(counts.min, expected.min);
  EXPECT_EQ(counts.max, expected.max);
  double magnitudes = 0;
  for (const float value : values) magnitudes += std::abs(static_cast<double>(value));
  expect_sum(counts.sum, expected.sum, magnitudes);
  expect_sum(counts.sum_squares, expected.sum_squares, expected.sum_squares);
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> exponent(-45, 38);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto wide = static_cast<float>(std::pow(10.0, exponent(random)));  // below 1e-38: denormal
    values[i] = i % 3 == 0 ? normal(random) : i % 3 == 1 ? wide : -wide;
    if (i % 11 == 5) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  return values;
}

// At the limits of the buckets and next to them, and at the ends of floats.
std::vector<float> values_at_limits() {
  std::vector<float> values;
  for (const double limit : tbwriter::histogram_limits(0)) {
    const auto near = static_cast<float>(limit);
    for (const float value : {std::nextafter(near, -kInfinity), near, std::nextafter(near, kInfinity)})
      values.push_back(value);
  }
  for (const float end : {std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()})
    values.insert(values.end(), {end, -end});
  return values;
}

TEST(ValueCounter, CountsAsTheWriter) {
  std::vector<std::vector<float>> arrays = {
      values_at_limits(),         {kNan},        {kInfinity},       {-kInfinity, -kInfinity},
      {kInfinity, 1, -kInfinity}, {kNan, -0.0f}, {-2, kInfinity, 3}};
  unsigned seed = 0;
  for (const std::size_t size : {0, 1, 2, 3, 31, 255, 256, 257, 1000, 16383, 16384, 16385, 32768, 100'000})
    arrays.push_back(random_values(size, ++seed));
  arrays.push_back(random_values(30'000, ++seed));
  arrays.back()[7] = kNan;
  arrays.back()[20'000] = kInfinity;
  const std::vector<HistogramCounts> first = count(arrays);
  test::in_every_order([&] {
    const std::vector<HistogramCounts> counts = count(arrays);
    ASSERT_EQ(counts.size(), arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      SCOPED_TRACE("array " + std::to_string(i));
      expect_as_the_writer_counts(counts[i], arrays[i]);
      if (std::isnan(first[i].sum)) continue;
      EXPECT_EQ(counts[i].sum, first[i].sum);
      EXPECT_EQ(counts[i].sum_squares, first[i].sum_squares);
    }
  });
}

TEST(ValueCounter, CountsAgainAfterValuesChanged) {
  const std::vector<float> values = {-1, 0, 0.5f, 1, 2, 1e30f};
  EXPECT_THAT(count({values}, {}).at(0).buckets, ElementsAre(6));
  EXPECT_THAT(count({values}, std::vector{0.0, 1.0}).at(0).buckets, ElementsAre(1, 2, 3));
  EXPECT_THAT(count({values}, std::vector{-1e300, 1e300}).at(0).buckets, ElementsAre(0, 6, 0));
  EXPECT_TRUE(count({}).empty());

  Stream stream;
  const Array<float> array(3, "a test");
  const ValueCounter counter(stream, {{array.data(), 3}}, std::vector{0.0});
  for (const float value : {-1.0f, 1.0f}) {
    const std::vector<float> all(3, value);
    stream.upload(array.data(), all.data(), all.size() * sizeof(float));
    const HistogramCounts counts = counter.count(stream).at(0);
    EXPECT_EQ(counts.sum, 3 * value);
    EXPECT_EQ(counts.buckets.at(value < 0 ? 0 : 1), 3u);
  }
}

TEST(ValueCounter, RejectsTooManyLimits) {
  std::vector<double> limits(kMaxLimits + 1);
  for (std::size_t i = 0; i < limits.size(); ++i) limits[i] = static_cast<double>(i);
  EXPECT_THAT([&] { count({{1}}, limits); },
              ThrowsMessage<ConfigError>("a histogram on CUDA has at most 8192 limits, but got 8193"));
  limits.pop_back();
  EXPECT_EQ(count({{1}}, limits).at(0).buckets.at(2), 1u);
}

}  // namespace sweep::cuda::value_counter_test
