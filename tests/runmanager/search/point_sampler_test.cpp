// Points that are given, and results from elsewhere.

#include "tests/runmanager/search/made_domains.h"

#include "tests/support/test.h"

namespace sweep::point_sampler_test {

using enum DimensionKind;
using ::testing::Optional;

SearchDomain plane() { return test::unit_cube(2); }

std::vector<Observation> first_trials(const Sampler& sampler, std::size_t trials) {
  return test::trials_of(sampler, trials, [](std::size_t, const SearchPoint& point) {
    return Observation{.point = point, .value = *point[0]};
  });
}

TEST(PointSampler, BeginsWithItsPointsAndDrawsWhatTheyLack) {
  const auto sampler = Sampler(plane(), {.seed = 3, .points = {{0.25, 0.75}, {0.5, std::nullopt}}});
  const auto trials = first_trials(sampler, 4);
  EXPECT_EQ(trials[0].point, (SearchPoint{0.25, 0.75}));
  EXPECT_EQ(trials[1].point[0], 0.5);
  EXPECT_TRUE(trials[1].point[1]);
  const auto other = Sampler(plane(), {.seed = 4, .points = {{0.25, 0.75}, {0.5, std::nullopt}}});
  EXPECT_NE(first_trials(other, 2)[1].point[1], trials[1].point[1]) << "by its seed";
}

TEST(PointSampler, OtherTrialsAreThoseOfTheRest) {
  const auto random = Sampler(plane(), {.seed = 3});
  const auto sampler = Sampler(plane(), {.seed = 3, .points = {{0.25, 0.75}}});
  const auto trials = first_trials(sampler, 5);
  for (std::size_t t = 1; t < 5; ++t)
    EXPECT_EQ(trials[t].point, random.suggest(t, std::span(trials).first(t)));
}

TEST(PointSampler, APointThatIsThereTwiceIsTriedOnce) {
  const auto sampler = Sampler(plane(), {.seed = 3, .points = {{0.25, 0.75}, {0.25, 0.75}}});
  const auto trials = first_trials(sampler, 2);
  EXPECT_NE(trials[1].point, trials[0].point);
}

TEST(PointSampler, WhatDoesNotExistAtAPointHasNoValue) {
  SearchDomain domain{
      .dimensions = {{.kind = kChoice, .choices = 2}, {.kind = kUniform, .low = 0, .high = 1}}};
  domain.is_active = [](const SearchPoint& point, std::size_t d) { return d == 0 || point[0] == 1.0; };
  const auto sampler = Sampler(domain, {.seed = 1, .points = {{0.0, 0.5}, {1.0, std::nullopt}}});
  const auto trials = first_trials(sampler, 2);
  EXPECT_EQ(trials[0].point, (SearchPoint{0.0, std::nullopt}));
  EXPECT_THAT(trials[1].point[1], Optional(::testing::_));
}

TEST(PointSampler, DrawsAllowedPointsOnly) {
  SearchDomain domain = plane();
  domain.is_allowed = [](const SearchPoint& point) { return *point[1] > 0.5; };
  const auto sampler =
      Sampler(domain, {.seed = 1, .points = std::vector<SearchPoint>(20, {0.5, std::nullopt})});
  for (const Observation& trial : first_trials(sampler, 20)) {
    EXPECT_EQ(trial.point[0], 0.5);
    EXPECT_GT(*trial.point[1], 0.5);
  }
}

TEST(TpeSampler, ResultsFromElsewhereLeadItsFirstTrials) {
  const auto value = [](const SearchPoint& p) {
    return (*p[0] - 0.3) * (*p[0] - 0.3) + (*p[1] - 0.7) * (*p[1] - 0.7);
  };
  double without = 0, with = 0;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    std::vector<Observation> learned;
    for (Observation& trial : first_trials(Sampler(plane(), {.seed = 100 + seed}), 60))
      learned.push_back({.point = trial.point, .value = value(trial.point)});
    for (const Observation& trial : first_trials(Sampler(plane(), {.seed = seed, .learns = true}), 8))
      without += value(trial.point);
    for (const Observation& trial :
         first_trials(Sampler(plane(), {.seed = seed, .learns = true, .learned = learned}), 8))
      with += value(trial.point);
  }
  EXPECT_LT(with, without / 2);
}

// All points of a small space are tried, also those that are known from elsewhere.
TEST(TpeSampler, AResultFromElsewhereIsNoTrial) {
  const SearchDomain domain{.dimensions = {{.kind = kChoice, .choices = 6}}};
  const std::vector<Observation> learned(20, {.point = {2.0}, .value = 0.0});
  EXPECT_EQ(first_trials(Sampler(domain, {.seed = 1, .learns = true, .learned = learned}), 10).size(), 6U);
}

TEST(TpeSampler, AResultFromElsewhereMayLackDimensions) {
  const std::vector<Observation> learned(20, {.point = {0.1, std::nullopt}, .value = 0.0});
  EXPECT_EQ(first_trials(Sampler(plane(), {.seed = 1, .learns = true, .learned = learned}), 10).size(), 10U);
}

}  // namespace sweep::point_sampler_test
