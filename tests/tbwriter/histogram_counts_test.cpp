#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/histogram.h"
#include "tbwriter/proto_encoding.h"
#include "tests/support/event_files.h"
#include "tests/support/message_of.h"

namespace sweep::tbwriter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Given {
  std::vector<double> limits = {1, 2, 3}, counts = {1, 0, 2};
  double min = 0, max = 3, number = 3, sum = 6;

  Histogram checked() const {
    return checked_histogram({.min = min,
                              .max = max,
                              .number = number,
                              .sum = sum,
                              .sum_squares = 14,
                              .limits = limits,
                              .counts = counts});
  }
  std::string refusal() const {
    return test::message_of<UsageError>([this] { checked(); });
  }
};

TEST(CheckedHistogram, MergesNeighbouringEmptyBucketsAndDropsThoseAtTheEnds) {
  const Given given{.limits = {-2, -1, 0, 1, 2, 3, 4, 5}, .counts = {0, 3, 0, 0, 0, 5, 0, 0}, .number = 8};
  const Histogram histogram = given.checked();
  EXPECT_THAT(histogram.limits, ElementsAre(-1, 2, 3));
  EXPECT_THAT(histogram.counts, ElementsAre(3, 0, 5));
  EXPECT_TRUE((Given{.counts = {0, 0, 0}, .number = 0}).checked().counts.empty());
}

TEST(CheckedHistogram, RefusesWhatNoValuesCanGive) {
  EXPECT_NO_THROW(Given().checked());
  for (const std::vector<double>& limits :
       {std::vector<double>{1, kNan, 3}, {kNan, 2, 3}, {1, 2, kNan}, {1, 1, 3}, {1, 2}})
    EXPECT_THAT((Given{.limits = limits}).refusal(), HasSubstr("limits that grow and are not NaN"));
  EXPECT_THAT((Given{.limits = {kNan}, .counts = {3}}).refusal(), HasSubstr("not NaN"));
  for (const double count : {-1.0, kNan, kInf})
    EXPECT_THAT((Given{.counts = {1, count, 2}}).refusal(), HasSubstr("counts are finite and >= 0"));
  EXPECT_THAT((Given{.min = 4}).refusal(), HasSubstr("min 4.000000 is not at most its max 3.000000"));
  EXPECT_THAT((Given{.max = kNan}).refusal(), HasSubstr("not at most its max"));
  for (const double number : {2.0, 4.0, kNan})
    EXPECT_THAT((Given{.number = number}).refusal(), HasSubstr("its counts sum up to 3.0"));
}

TEST(CheckedHistogram, TakesMoreValuesThanCountsOnlyWhereSomeAreNotFinite) {
  EXPECT_NO_THROW((Given{.number = 5, .sum = kNan}).checked());
  EXPECT_NO_THROW((Given{.number = 5, .sum = -kInf}).checked());
  EXPECT_THAT((Given{.number = 2, .sum = kNan}).refusal(), HasSubstr("its counts sum up to 3.0"));
}

TEST(EncodeHistogram, KeepsToTheRangeOfFloats) {
  const std::vector<double> values = {-1e300, 1, 1e200};
  proto::Histogram message;
  ASSERT_TRUE(message.ParseFromString(encode_histogram(make_histogram(std::span<const double>(values)))));
  for (const double number :
       {message.min(), message.max(), message.bucket_limit(message.bucket_limit_size() - 1)})
    EXPECT_TRUE(std::isfinite(static_cast<float>(number))) << number;
  EXPECT_EQ(message.sum(), -1e300 + 1e200);
}

}  // namespace
}  // namespace sweep::tbwriter
