#include "tests/runmanager/search/made_domains.h"

#include "tests/support/test.h"

namespace sweep::random_sampler_test {

using enum DimensionKind;

constexpr std::size_t kTrials = 2000, kParts = 10;

// How many of kTrials points of one dimension are in each tenth, compared with a tenth each.
double chi_square(const Dimension& dimension, const std::function<double(double)>& part_of_range) {
  const auto sampler = Sampler({.dimensions = {dimension}}, {.seed = 7});
  std::array<double, kParts> counts{};
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    const auto point = sampler.suggest(trial, {});
    const double part = part_of_range(*point->at(0));
    ++counts.at(std::min(static_cast<std::size_t>(part * kParts), kParts - 1));
  }
  constexpr double kExpected = static_cast<double>(kTrials) / kParts;
  double sum = 0;
  for (const double count : counts) sum += std::pow(count - kExpected, 2) / kExpected;
  return sum;
}

constexpr double kLimit = 27.9;  // 9 degrees of freedom: 0.1 % are above

TEST(RandomSampler, RealNumbersAreUniform) {
  EXPECT_LT(chi_square({.kind = kUniform, .low = -1, .high = 3}, [](double x) { return (x + 1) / 4; }),
            kLimit);
}

TEST(RandomSampler, RealNumbersOnALogarithmicScaleAreUniformThere) {
  const Dimension dimension{.kind = kLogUniform, .low = 1e-5, .high = 1};
  EXPECT_LT(chi_square(dimension, [](double x) { return std::log10(x) / 5 + 1; }), kLimit);
  EXPECT_GT(chi_square(dimension, [](double x) { return x; }), 1000);
}

TEST(RandomSampler, IntegersAndChoicesAreUniform) {
  EXPECT_LT(chi_square({.kind = kInteger, .low = 1, .high = 10}, [](double x) { return (x - 0.5) / 10; }),
            kLimit);
  EXPECT_LT(chi_square({.kind = kChoice, .choices = 10}, [](double x) { return (x + 0.5) / 10; }), kLimit);
}

TEST(RandomSampler, LargeIntegersOnALogarithmicScaleAreUniformThere) {
  EXPECT_LT(chi_square({.kind = kLogInteger, .low = 1000, .high = 1'000'000},
                       [](double x) { return std::log10(x) / 3 - 1; }),
            kLimit);
}

TEST(RandomSampler, DimensionsAndTrialsAreIndependent) {
  const auto sampler = Sampler(
      {.dimensions = std::vector<Dimension>(2, {.kind = kUniform, .low = -1, .high = 1})}, {.seed = 3});
  double between_dimensions = 0, between_trials = 0, last = 0;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    const auto point = sampler.suggest(trial, {});
    between_dimensions += *point->at(0) * *point->at(1);
    between_trials += *point->at(0) * last;
    last = *point->at(0);
  }
  // The deviation of the sums is sqrt(n) / 3.
  EXPECT_LT(std::abs(between_dimensions), std::sqrt(kTrials));
  EXPECT_LT(std::abs(between_trials), std::sqrt(kTrials));
}

TEST(RandomSampler, ValuesOfEarlierTrialsChangeNothing) {
  const auto sampler = Sampler(test::unit_cube(1), {.seed = 3});
  const std::vector<Observation> good{{.point = {0.25}, .value = -10}},
      bad{{.point = {0.25}, .failed = true}};
  for (std::size_t trial = 1; trial < 20; ++trial)
    EXPECT_EQ(sampler.suggest(trial, good), sampler.suggest(trial, bad));
}

}  // namespace sweep::random_sampler_test
