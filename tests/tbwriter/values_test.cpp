#include "tbwriter/values.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "tbwriter/histogram.h"

namespace sweep::tbwriter {
namespace {

TEST(Half, HasTheValuesOfIeee754) {  // numpy.frombuffer(..., dtype=numpy.float16)
  EXPECT_EQ(to_float(Half{0x3C00}), 1.0f);
  EXPECT_EQ(to_float(Half{0xC000}), -2.0f);
  EXPECT_EQ(to_float(Half{0x7BFF}), 65504.0f);
  EXPECT_EQ(to_float(Half{0x0400}), 0x1p-14f);
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Half{0x3555}), 0.333251953125f);
  EXPECT_TRUE(std::signbit(to_float(Half{0x8000})));
  EXPECT_EQ(to_float(Half{0xFC00}), -INFINITY);
  EXPECT_TRUE(std::isnan(to_float(Half{0x7E00})));
}

TEST(BFloat16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(to_float(BFloat16{0x3F80}), 1.0f);
  EXPECT_EQ(to_float(BFloat16{0xC040}), -3.0f);
  EXPECT_EQ(to_float(BFloat16{0x7F80}), INFINITY);
  EXPECT_TRUE(std::isnan(to_float(BFloat16{0x7FC0})));
}

TEST(Values, OfEveryTypeMakeTheSameHistogram) {
  const std::vector<float> floats{1, -2, 0.5f, 0, 8};
  const std::vector<double> doubles(floats.begin(), floats.end());
  const std::array<Half, 5> halves{Half{0x3C00}, Half{0xC000}, Half{0x3800}, Half{0}, Half{0x4800}};
  std::vector<BFloat16> brains;
  for (const float value : floats)
    brains.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)});
  const Histogram expected = make_histogram(Values(floats));
  for (const Values values : {Values(doubles), Values(halves), Values(brains)}) {
    const Histogram histogram = make_histogram(values);
    EXPECT_EQ(histogram.limits, expected.limits);
    EXPECT_EQ(histogram.counts, expected.counts);
    EXPECT_EQ(histogram.sum, expected.sum);
  }
  std::vector<std::int64_t> integers{1, -2, 3};
  EXPECT_EQ(make_histogram(std::span<std::int64_t>(integers)).sum, 2);
  EXPECT_EQ(make_histogram(Values(integers)).min, -2);
}

TEST(Values, KnowTheirBytes) {
  const std::vector<Half> halves(3);
  EXPECT_EQ(Values(halves).bytes().size(), 6u);
  EXPECT_EQ(Values(std::vector<double>(2)).bytes().size(), 16u);
  EXPECT_EQ(Values(std::vector<float>(2)).count(), 2u);
}

}  // namespace
}  // namespace sweep::tbwriter
