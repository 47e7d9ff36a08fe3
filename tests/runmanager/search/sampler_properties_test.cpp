// What holds for every sampler.

#include "tests/runmanager/search/made_domains.h"
#include "tests/support/growth.h"

namespace sweep::sampler_properties_test {

using MakeSampler = Sampler (*)(SearchDomain, std::uint64_t);

double value_of(const SearchPoint& point) {
  double sum = 0;
  for (const auto& value : point)
    if (value) sum += std::abs(*value - 0.3);
  return sum;
}

// Trials; some fail and some have no value yet.
std::vector<Observation> trials_of(const Sampler& sampler, std::size_t count) {
  return test::trials_of(sampler, count, [count](std::size_t number, const SearchPoint& point) {
    Observation trial{.point = point};
    if (number % 7 == 3)
      trial.failed = true;
    else if (number % 7 == 5)
      trial.value = std::numeric_limits<double>::quiet_NaN();
    else if (number + 4 < count)
      trial.value = value_of(point);
    return trial;
  });
}

class SamplerProperties : public testing::TestWithParam<MakeSampler> {};

TEST_P(SamplerProperties, PointsAreThoseOfTheSpace) {
  const SearchDomain domain = test::domain_of_all_kinds();
  std::size_t with_condition = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (const Observation& trial : trials_of(GetParam()(domain, seed), 100)) {
      test::expect_point_of(domain, trial.point);
      if (trial.point[3]) ++with_condition;
    }
  EXPECT_GT(with_condition, 25u);
}

TEST_P(SamplerProperties, NoPointComesTwice) {
  const SearchDomain domain{.dimensions = {{.kind = DimensionKind::kInteger, .low = 0, .high = 9},
                                           {.kind = DimensionKind::kChoice, .choices = 9}}};
  std::set<SearchPoint> points;
  const auto trials = trials_of(GetParam()(domain, 4), 80);
  for (const Observation& trial : trials) points.insert(trial.point);
  EXPECT_EQ(trials.size(), 80u);
  EXPECT_EQ(points.size(), trials.size());
}

TEST_P(SamplerProperties, AFiniteSpaceIsSearchedToItsEnd) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto trials = trials_of(GetParam()(test::domain_of_five_points(), seed), 100);
    std::set<SearchPoint> points;
    for (const Observation& trial : trials) points.insert(trial.point);
    EXPECT_EQ(points, (std::set<SearchPoint>{
                          {0.0, 1.0}, {0.0, 3.0}, {0.0, 4.0}, {1.0, std::nullopt}, {2.0, std::nullopt}}));
    EXPECT_EQ(trials.size(), 5u);
  }
}

TEST_P(SamplerProperties, TheLastPointOfManyIsFound) {
  const SearchDomain domain{.dimensions = {{.kind = DimensionKind::kInteger, .low = 0, .high = 9999}}};
  std::vector<Observation> trials;
  for (int i = 0; i < 10'000; ++i)
    if (i != 1234) trials.push_back({.point = {static_cast<double>(i)}, .value = i});
  EXPECT_EQ(GetParam()(domain, 2).suggest(trials.size(), trials), SearchPoint{1234.0});
}

TEST_P(SamplerProperties, ASpaceOfWhichAllIsLeftOutIsExhausted) {
  SearchDomain domain = test::unit_cube(1);
  domain.is_allowed = [](const SearchPoint&) { return false; };
  EXPECT_FALSE(GetParam()(domain, 2).suggest(0, {}));
}

TEST_P(SamplerProperties, ASpaceWithoutDimensionsHasOnePoint) {
  EXPECT_EQ(trials_of(GetParam()({}, 2), 5).size(), 1u);
}

TEST_P(SamplerProperties, SuggestionsAreAFunctionOfSeedTrialAndEarlierTrials) {
  const SearchDomain domain = test::domain_of_all_kinds();
  const auto first = GetParam()(domain, 9), again = GetParam()(domain, 9);
  const auto trials = trials_of(first, 50);
  // In another order, and by another sampler that has not seen the trials before.
  for (std::size_t trial = trials.size(); trial-- > 0;) {
    const std::span<const Observation> earlier(trials.data(), trial);
    EXPECT_EQ(again.suggest(trial, earlier), first.suggest(trial, earlier));
  }
}

TEST_P(SamplerProperties, TheFirstPointsAreThoseOfSuggestionsBeforeAnyResult) {
  for (const SearchDomain& domain : {test::domain_of_all_kinds(), test::domain_of_five_points()}) {
    const auto sampler = GetParam()(domain, 9);
    std::vector<SearchPoint> points;
    for (const Observation& trial : test::trials_of(
             sampler, 30, [](std::size_t, const SearchPoint& point) { return Observation{.point = point}; }))
      points.push_back(trial.point);
    EXPECT_EQ(sampler.first_points(30), points);
  }
}

TEST_P(SamplerProperties, OtherSeedsAndTrialsGiveOtherPoints) {
  const SearchDomain domain = test::domain_of_all_kinds();
  const auto sampler = GetParam()(domain, 9);
  const auto trials = trials_of(sampler, 30);
  EXPECT_NE(sampler.suggest(30, trials), sampler.suggest(31, trials));
  EXPECT_NE(sampler.suggest(30, trials), GetParam()(domain, 10).suggest(30, trials));
  EXPECT_NE(sampler.suggest(0, {}), GetParam()(domain, 9 + (1ull << 32)).suggest(0, {}));
}

TEST_P(SamplerProperties, EarlierPointsFromElsewhereDoNoHarm) {
  const SearchDomain domain = test::domain_of_all_kinds();
  std::vector<Observation> trials(30);
  for (int i = 0; i < 30; ++i)
    trials.at(i) = {.point = {-50.0 + i, 1e-9, 1e6, 0.0, 17.0 + i, -3.0}, .value = i % 2 ? 1e300 : -1e300};
  const auto point = GetParam()(domain, 9).suggest(30, trials);
  ASSERT_TRUE(point);
  test::expect_point_of(domain, *point);
}

TEST_P(SamplerProperties, TheWidestRangesAreSearched) {
  const SearchDomain domain{
      .dimensions = {{.kind = DimensionKind::kInteger, .low = 0, .high = 9e15},
                     {.kind = DimensionKind::kLogInteger, .low = 1, .high = 9e15},
                     {.kind = DimensionKind::kUniform, .low = -8e307, .high = 8e307},
                     {.kind = DimensionKind::kLogUniform, .low = 1e-300, .high = 1e300}}};
  const auto trials = test::trials_of(GetParam()(domain, 3), 40, [](std::size_t, const SearchPoint& point) {
    return Observation{.point = point, .value = *point[0] / 9e15 + std::log10(*point[1]) / 16};
  });
  EXPECT_EQ(trials.size(), 40u);
  for (const Observation& trial : trials)
    for (std::size_t d = 0; d < 4; ++d) {
      EXPECT_GE(*trial.point[d], domain.dimensions[d].low);
      EXPECT_LE(*trial.point[d], domain.dimensions[d].high);
    }
}

Sampler random_sampler(SearchDomain domain, std::uint64_t seed) {
  return {std::move(domain), {.seed = seed}};
}
Sampler tpe_sampler(SearchDomain domain, std::uint64_t seed) {
  return {std::move(domain), {.seed = seed, .learns = true}};
}

INSTANTIATE_TEST_SUITE_P(All, SamplerProperties, testing::Values(&random_sampler, &tpe_sampler),
                         [](const auto& sampler) { return sampler.index == 0 ? "Random" : "Tpe"; });

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

TEST(RandomSampler, EveryKindOfDimensionIsUniformOnItsScale) {
  const struct {
    Dimension dimension;
    double (*part_of_range)(double);
  } cases[] = {
      {{.kind = kUniform, .low = -1, .high = 3}, [](double x) { return (x + 1) / 4; }},
      {{.kind = kLogUniform, .low = 1e-5, .high = 1}, [](double x) { return std::log10(x) / 5 + 1; }},
      {{.kind = kInteger, .low = 1, .high = 10}, [](double x) { return (x - 0.5) / 10; }},
      {{.kind = kChoice, .choices = 10}, [](double x) { return (x + 0.5) / 10; }},
      {{.kind = kLogInteger, .low = 1000, .high = 1'000'000}, [](double x) { return std::log10(x) / 3 - 1; }},
  };
  for (const auto& [dimension, part] : cases)
    EXPECT_LT(chi_square(dimension, part), kLimit) << static_cast<int>(dimension.kind);
  EXPECT_GT(chi_square(cases[1].dimension, [](double x) { return x; }), 1000) << "the test would find it";
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

TEST(RandomSampler, DrawsManyPointsInLinearTime) {
  const auto sampler = Sampler(test::unit_cube(2), {.seed = 3});
  const auto draw = [&sampler](std::size_t count) { EXPECT_EQ(sampler.first_points(count).size(), count); };
  EXPECT_LT(test::growth(draw, 4000), test::kLinearGrowth);
}

// Points that are given, and results from elsewhere.

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

TEST(PointSampler, DrawsPointsAtWhichWhatIsGivenExists) {
  const SearchPoint given = {{}, {}, 3.0, 7.0, {}, {}};  // with choice 1 of three
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sampler sampler(test::domain_of_all_kinds(), {.seed = seed, .points = {given}});
    const SearchPoint point = *sampler.suggest(0, {});
    EXPECT_EQ(point[2], 3.0) << seed;
    EXPECT_EQ(point[3], 7.0) << seed;
  }
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

}  // namespace sweep::sampler_properties_test
