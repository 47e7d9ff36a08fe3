#include "runmanager/search/pareto.h"

#include <random>

#include "tests/support/test.h"

namespace sweep::pareto_test {

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

}  // namespace sweep::pareto_test
