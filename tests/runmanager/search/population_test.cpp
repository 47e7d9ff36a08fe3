// Who leaves a population and who is copied are functions of the results of a generation.
#include "runmanager/search/decisions.h"

#include <random>

#include "runmanager/search/pareto.h"
#include "tests/runmanager/search/made_domains.h"
#include "tests/support/growth.h"

namespace sweep::population_test {

using test::MadeResults, test::no_target, test::text_of;

TEST(Population, GoesOnAsItsResultsAllow) {
  const Population four{4, 2, 6, 4}, two{2, 2, 5, 2};
  const char* const later = "2: 3 1 4 2 | 4: 3 2.5 99 2 5";
  const struct {
    Population population;
    std::size_t trials;
    const char *results, *state, *claim;
  } games[] = {
      {four, 4, "", "2 2 2 2", "all members are trained to the first interval"},
      {four, 4, "2: 1 2 3", "2 2 2 2", "nothing is decided before all results are there"},
      {four, 4, "2: 3 1 4 2", "2 2 2! 2, 1@2", "the worst leaves, and all wait for the copy of a best one"},
      {four, 5, "2: 3 1 4 2", "4 4 2! 4 4, 1@2", "then they go on"},
      {four, 5, later, "4 4 2! 4 4!, 1@2, 3@4", "also a copy may leave"},
      {four, 6, later, "6 6 2! 6 4! 6, 1@2, 3@4", "to the end"},
      {{6, 1, 3, 3},
       6,
       "1: 1 6 2 5 3 4",
       "1 1! 1 1! 1 1, 0@1, 2@1",
       "best for worst, second best for second"},
      {two, 4, "2: 1 2 0.5 | 4: 1 2 0.5", "4! 2! 5 5, 0@2, 2@4", "the last interval may be shorter"},
      {{4, 1, 3, 2}, 4, "1: x x x 9", "1 1! 1! 1, 3@1, 3@1", "failed members are the worst, never copied"},
      {{2, 1, 3, 2}, 2, "1: x x", "2 2", "if all have failed none is copied"}};
  for (const auto& [population, trials, results, state, claim] : games)
    EXPECT_EQ(text_of(population.play(trials, MadeResults(results), no_target)), state) << claim;
  EXPECT_EQ(four.total(), 6U);
  EXPECT_EQ(two.total(), 4U);
}

TEST(Population, OnlyThoseThatReachATargetGoOn) {
  const auto reaches = [](double value) { return value < 1; };
  EXPECT_EQ(text_of(Population{4, 1, 9, 4}.play(4, MadeResults("1: 0.5 3 0.75 2"), reaches)), "9 1! 9 1!");
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
    test::expect_point_of(domain, point);
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

std::vector<GoalValues> random_points(std::size_t count, std::size_t goals, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<GoalValues> points(count, GoalValues(goals));
  for (GoalValues& point : points)
    for (double& value : point) value = static_cast<double>(random() % 40);  // with equal ones
  return points;
}

bool beats(const GoalValues& a, const GoalValues& b) {
  bool is_better = false;
  for (std::size_t goal = 0; goal < a.size(); ++goal) {
    if (a[goal] > b[goal]) return false;
    is_better |= a[goal] < b[goal];
  }
  return is_better;
}

// How many fronts have to be taken away before the point is in one.
std::vector<int> ranks_of(const std::vector<GoalValues>& points) {
  std::vector<int> ranks(points.size(), -1);
  for (int rank = 0; std::ranges::find(ranks, -1) != ranks.end(); ++rank) {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto is_beaten_by = [&](std::size_t other) {
        return ranks[other] == -1 && beats(points[other], points[i]);
      };
      bool is_beaten = false;
      for (std::size_t other = 0; other < points.size(); ++other) is_beaten |= is_beaten_by(other);
      if (ranks[i] == -1 && !is_beaten) front.push_back(i);
    }
    for (const std::size_t i : front) ranks[i] = rank;
  }
  return ranks;
}

TEST(ParetoFront, IsWhatNoOtherPointDominates) {
  EXPECT_THAT(pareto_front(std::vector<GoalValues>{{3, 1}, {2, 2}, {1, 3}, {2, 3}, {4, 4}, {1, 3}}),
              ElementsAre(2, 5, 1, 0));
  EXPECT_THAT(pareto_front(std::vector<GoalValues>{}), ElementsAre());
  for (const std::size_t goals : {1U, 2U, 3U, 5U}) {
    const std::vector<GoalValues> points = random_points(120, goals, 7);
    const std::vector<int> ranks = ranks_of(points);
    std::vector<std::size_t> front = pareto_front(points), expected;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (ranks[i] == 0) expected.push_back(i);
    EXPECT_TRUE(std::ranges::is_sorted(front, {}, [&](std::size_t i) { return std::pair(points[i], i); }));
    std::ranges::sort(front);
    EXPECT_EQ(front, expected) << goals;
  }
}

// Goals that contradict each other make all trials a front, which tpe takes after each of them.
TEST(ParetoFront, TakesTimeThatIsAboutLinearInTwoGoals) {
  const double times = test::growth(
      [](std::size_t count) {
        std::vector<GoalValues> points;
        for (std::size_t i = 0; i < count; ++i)
          points.push_back({static_cast<double>(i), -static_cast<double>(i)});
        EXPECT_THAT(pareto_front(points), SizeIs(count));
      },
      20000);
  EXPECT_LT(times, test::kLinearGrowth);
}

TEST(BestOfFronts, TakesAFrontBeforeThoseAfterIt) {
  for (const std::size_t goals : {2U, 3U}) {
    const std::vector<GoalValues> points = random_points(90, goals, 11);
    const std::vector<int> ranks = ranks_of(points);
    std::vector<int> sorted = ranks;
    std::ranges::sort(sorted);
    for (const std::size_t count : {1U, 2U, 5U, 40U, 90U, 200U}) {
      const std::vector<std::size_t> best = best_of_fronts(points, count);
      ASSERT_EQ(best.size(), std::min(count, points.size()));
      std::vector<std::size_t> different = best;
      std::ranges::sort(different);
      EXPECT_EQ(std::ranges::adjacent_find(different), different.end());
      for (std::size_t i = 0; i < best.size(); ++i) EXPECT_EQ(ranks[best[i]], sorted[i]) << goals << " " << i;
    }
  }
}

TEST(BestOfFronts, TakesFromAFrontWhatAddsMostToTheHypervolume) {
  // The corner is at (10.9, 10.9): areas of 8.9, 47.6, 8.9 and 25.8, then 2.7, 2.7 and 5.8 remain.
  EXPECT_THAT(best_of_fronts(std::vector<GoalValues>{{1, 10}, {4, 4}, {10, 1}, {2, 8}}, 4),
              ElementsAre(1, 3, 2, 0));
  // A crowded end does not crowd out the rest.
  std::vector<GoalValues> points;
  for (int i = 0; i <= 10; ++i) points.push_back({i * 0.01, 1000 - i * 0.01});
  points.insert(points.end(), {{0.5, 500}, {1, 0}});
  std::vector<std::size_t> best = best_of_fronts(points, 3);
  EXPECT_THAT(std::vector(best.begin(), best.begin() + 1), ElementsAre(11));
  EXPECT_NE(std::ranges::find(best, 12U), best.end());
}

TEST(BestOfFronts, OfThreeGoalsAddsTheVolumesOfBoxes) {
  // The corner is at 2.2 in each: 1.2 * 1.2 * 0.2 and 2.2 * 0.2 * 0.2.
  const std::vector<GoalValues> points = {{1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {0, 2, 2}, {2, 0, 2}, {2, 2, 0}};
  const std::vector<std::size_t> best = best_of_fronts(points, 6);
  EXPECT_THAT(std::vector(best.begin(), best.begin() + 3), ElementsAre(0, 1, 2));
}

}  // namespace sweep::population_test
