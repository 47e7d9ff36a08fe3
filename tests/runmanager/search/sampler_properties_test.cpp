// What holds for every sampler.

#include "runmanager/search/sampler.h"
#include "tests/runmanager/search/made_domains.h"

#include "tests/support/test.h"

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

TEST_P(SamplerProperties, PointsAreWithinTheEndsAndWholeWhereTheyHaveToBe) {
  const SearchDomain domain = test::domain_of_all_kinds();
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (const Observation& trial : trials_of(GetParam()(domain, seed), 60))
      for (std::size_t d = 0; d < domain.dimensions.size(); ++d) {
        if (!trial.point[d]) continue;
        const Dimension& dimension = domain.dimensions[d];
        const double value = *trial.point[d];
        const bool choice = dimension.kind == DimensionKind::kChoice;
        EXPECT_GE(value, choice ? 0 : dimension.low);
        EXPECT_LE(value, choice ? static_cast<double>(dimension.choices) - 1 : dimension.high);
        EXPECT_EQ(value, rounded(dimension, value));
      }
}

TEST_P(SamplerProperties, ConditionsAndRulesHold) {
  const SearchDomain domain = test::domain_of_all_kinds();
  std::size_t with_condition = 0;
  for (const Observation& trial : trials_of(GetParam()(domain, 1), 100)) {
    EXPECT_TRUE(domain.is_allowed(trial.point));
    EXPECT_EQ(trial.point[2].has_value(), trial.point[4] == 1.0);
    EXPECT_EQ(trial.point[3].has_value(), trial.point[2] && *trial.point[2] > 0);
    if (trial.point[3]) ++with_condition;
  }
  EXPECT_GT(with_condition, 5u);
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
  EXPECT_TRUE(domain.is_allowed(*point));
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

TEST_P(SamplerProperties, ADomainWithoutValuesIsAnError) {
  EXPECT_THROW(GetParam()({.dimensions = {{.kind = DimensionKind::kChoice}}}, 1), ConfigError);
}

Sampler random_sampler(SearchDomain domain, std::uint64_t seed) {
  return {std::move(domain), {.seed = seed}};
}
Sampler tpe_sampler(SearchDomain domain, std::uint64_t seed) {
  return {std::move(domain), {.seed = seed, .learns = true}};
}

INSTANTIATE_TEST_SUITE_P(All, SamplerProperties, testing::Values(&random_sampler, &tpe_sampler),
                         [](const auto& sampler) { return sampler.index == 0 ? "Random" : "Tpe"; });

}  // namespace sweep::sampler_properties_test
