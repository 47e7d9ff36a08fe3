// Who leaves a population and who is copied are functions of the results of a generation.
#include "runmanager/search/population.h"

#include "tests/runmanager/search/made_domains.h"
#include "tests/support/test.h"

namespace sweep::search_population_test {

using test::MadeResults, test::no_target;

std::vector<std::pair<std::size_t, int>> copies_of(const SearchState& state) {
  std::vector<std::pair<std::size_t, int>> copies;
  for (const PopulationCopy& copy : state.copies) copies.emplace_back(copy.parent, copy.epoch);
  return copies;
}

using Copies = std::vector<std::pair<std::size_t, int>>;

// Which trials have left the population.
std::vector<bool> ended_of(const SearchState& state) {
  std::vector<bool> ended;
  for (const std::string& reason : state.ended) ended.push_back(!reason.empty());
  return ended;
}

TEST(Population, TrainsAllMembersToTheFirstIntervalAndDecidesWhenAllResultsAreThere) {
  for (const MadeResults& results : {MadeResults(), MadeResults("2: 1 2 3")}) {
    const SearchState state = Population{4, 2, 6, 4}.play(4, results, no_target);
    EXPECT_THAT(state.until, ElementsAre(2, 2, 2, 2));
    EXPECT_THAT(ended_of(state), ElementsAre(false, false, false, false));
    EXPECT_TRUE(state.copies.empty());
  }
}

TEST(Population, TheWorstLeavesAndABestOneIsCopied) {
  const Population population{4, 2, 6, 4};
  MadeResults results = "2: 3 1 4 2";
  SearchState state = population.play(4, results, no_target);
  EXPECT_EQ(copies_of(state), (Copies{{1, 2}}));
  EXPECT_THAT(ended_of(state), ElementsAre(false, false, true, false));
  EXPECT_THAT(state.until, ElementsAre(2, 2, 2, 2)) << "no one goes on before the copy is there";
  state = population.play(5, results, no_target);
  EXPECT_THAT(state.until, ElementsAre(4, 4, 2, 4, 4));
  results = "2: 3 1 4 2 | 4: 3 2.5 99 2 5";
  state = population.play(5, results, no_target);
  EXPECT_EQ(copies_of(state), (Copies{{1, 2}, {3, 4}})) << "also a copy may leave";
  state = population.play(6, results, no_target);
  EXPECT_THAT(state.until, ElementsAre(6, 6, 2, 6, 4, 6));
  EXPECT_EQ(population.total(), 6U);
}

TEST(Population, TheWorstIsReplacedByTheBestAndTheSecondWorstByTheSecondBest) {
  const MadeResults results = "1: 1 6 2 5 3 4";
  EXPECT_EQ(copies_of(Population{6, 1, 3, 3}.play(6, results, no_target)), (Copies{{0, 1}, {2, 1}}));
}

TEST(Population, TheLastIntervalMayBeShorter) {
  const Population population{2, 2, 5, 2};
  const MadeResults results = "2: 1 2 0.5 | 4: 1 2 0.5";
  EXPECT_EQ(population.total(), 4U);
  EXPECT_EQ(copies_of(population.play(4, results, no_target)), (Copies{{0, 2}, {2, 4}}));
  EXPECT_THAT(population.play(4, results, no_target).until, ElementsAre(4, 2, 5, 5));
}

TEST(Population, FailedMembersAreTheWorstAndNeverCopied) {
  const MadeResults results = "1: x nan x 9";
  const SearchState state = Population{4, 1, 3, 2}.play(4, results, no_target);
  EXPECT_EQ(copies_of(state), (Copies{{3, 1}, {3, 1}}));
  EXPECT_THAT(ended_of(state), ElementsAre(false, true, true, false));
  const MadeResults none = "1: x x";
  EXPECT_EQ(copies_of(Population{2, 1, 3, 2}.play(2, none, no_target)), Copies());
}

TEST(Population, OnlyThoseThatReachATargetGoOn) {
  const MadeResults results = "1: 0.5 3 0.75 2";
  const SearchState state = Population{4, 1, 9, 4}.play(4, results, [](double value) { return value < 1; });
  EXPECT_THAT(state.until, ElementsAre(9, 1, 9, 1));
  EXPECT_THAT(ended_of(state), ElementsAre(false, true, false, true));
  EXPECT_TRUE(state.copies.empty());
}

SearchPoint explore(const SearchDomain& domain, const SearchPoint& parent, std::size_t trial) {
  UnitRandom random(7, trial, SearchDraw::kCopy);
  return explored_point(domain, parent, random);
}

TEST(Population, ACopyHasValuesNearbyOrNewOnes) {
  using enum DimensionKind;
  const SearchDomain domain{.dimensions = {{.kind = kLogUniform, .low = 1e-5, .high = 1},
                                           {.kind = kInteger, .low = 1, .high = 9},
                                           {.kind = kChoice, .choices = 9, .ordered = true}}};
  const SearchPoint parent = {0.01, 2.0, 4.0};
  std::map<std::optional<double>, int> numbers, integers, choices;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const SearchPoint point = explore(domain, parent, static_cast<std::size_t>(trial));
    ++numbers[point[0]], ++integers[point[1]], ++choices[point[2]];
  }
  // 3 in 8 each; a new value is drawn with 1 in 4. Five standard deviations are 153.
  EXPECT_NEAR(numbers[0.008], kTrials * 3 / 8, 153);
  EXPECT_NEAR(numbers[0.012], kTrials * 3 / 8, 153);
  EXPECT_GT(numbers.size(), 500U);
  // 2 * 1.2 is rounded to 2, so the neighbour is taken. New ones are 1 of 9.
  EXPECT_NEAR(integers[1], kTrials * (3. / 8 + 1. / 36), 160);
  EXPECT_NEAR(integers[3], kTrials * (3. / 8 + 1. / 36), 160);
  EXPECT_NEAR(choices[3], kTrials * (3. / 8 + 1. / 36), 160);
  EXPECT_NEAR(choices[5], kTrials * (3. / 8 + 1. / 36), 160);
  EXPECT_EQ(choices.size(), 9U);
}

TEST(Population, ACopyIsAPointOfTheSpace) {
  const SearchDomain domain = test::domain_of_all_kinds();
  SearchPoint point = {0.5, 0.01, std::nullopt, std::nullopt, 0.0, 3.0};
  std::set<SearchPoint> seen;
  for (std::size_t trial = 0; trial < 2000; ++trial) {
    point = explore(domain, point, trial);
    EXPECT_TRUE(domain.is_allowed(point));
    for (std::size_t d = 0; d < point.size(); ++d) {
      const Dimension& dimension = domain.dimensions[d];
      EXPECT_EQ(point[d].has_value(), domain.is_active(point, d)) << d;
      EXPECT_EQ(point[d], point[d] ? std::optional(rounded(dimension, *point[d])) : std::nullopt) << d;
    }
    EXPECT_EQ(explore(domain, point, trial), explore(domain, point, trial));
    seen.insert(point);
  }
  EXPECT_GT(seen.size(), 500U);
}

TEST(Population, ACopyKeepsTheParentsPointIfAllOthersAreLeftOut) {
  SearchDomain domain{.dimensions = {{.kind = DimensionKind::kUniform, .low = 0, .high = 1}}};
  domain.is_allowed = [](const SearchPoint& point) { return point[0] == 0.5; };
  EXPECT_EQ(explore(domain, {0.5}, 3), SearchPoint{0.5});
}

}  // namespace sweep::search_population_test
