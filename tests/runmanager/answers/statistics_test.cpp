#include "runmanager/answers/statistics.h"

#include "tests/support/test.h"

namespace sweep::statistics_test {

TEST(Statistics, TheIntervalOfAMeanIsStudents) {
  // scipy.stats.t.interval(0.95, 3, loc=2.5, scale=scipy.stats.sem([1, 2, 3, 4]))
  const auto estimate = mean_of(std::vector<double>{1, 2, 3, 4});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_EQ(estimate->count, 4u);
  EXPECT_DOUBLE_EQ(estimate->mean, 2.5);
  EXPECT_NEAR(estimate->interval->first, 0.4457397432391, 1e-10);
  EXPECT_NEAR(estimate->interval->second, 4.5542602567609, 1e-10);
}

TEST(Statistics, TheIntervalOfAGeometricMeanIsThatOfTheLogarithms) {
  const auto estimate = geometric_mean_of(std::vector<double>{1, 10, 100});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_NEAR(estimate->mean, 10, 1e-12);
  EXPECT_NEAR(estimate->interval->first * estimate->interval->second, 100, 1e-9);
  EXPECT_NEAR(estimate->interval->second, 3049.0, 1.0);
}

TEST(Statistics, OneValueHasAMeanAndNoInterval) {
  const auto estimate = mean_of(std::vector<double>{3});
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->mean, 3);
  EXPECT_FALSE(estimate->interval);
  EXPECT_FALSE(mean_of({}));
}

TEST(Statistics, ThereIsNoGeometricMeanOfWhatIsNotAboveZero) {
  EXPECT_FALSE(geometric_mean_of(std::vector<double>{1, 0}));
  EXPECT_FALSE(geometric_mean_of(std::vector<double>{1, -2}));
  EXPECT_FALSE(geometric_mean_of(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(geometric_mean_of({}));
}

}  // namespace sweep::statistics_test
