#include "runmanager/search/pareto.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace sweep {
namespace {

using Indices = std::vector<std::size_t>;

bool is_no_worse(const GoalValues& a, const GoalValues& b) {
  return std::ranges::equal(a, b, std::ranges::less_equal{});
}

// Whether `a` is nowhere worse than `b` and somewhere better.
bool dominates(const GoalValues& a, const GoalValues& b) { return is_no_worse(a, b) && a != b; }

// Takes the front out of `sorted`, which is in the order of pareto_front(). What dominates a point is before
// it, and is dominated by nothing in the front or in it.
Indices take_front(std::span<const GoalValues> points, Indices& sorted) {
  Indices front, rest;
  for (const std::size_t i : sorted) {
    // The last of the front has the best second value of it, which decides if there are two goals.
    const std::size_t count = points[i].size() == 2 ? std::min<std::size_t>(front.size(), 1) : front.size();
    const bool is_beaten = std::ranges::any_of(
        std::span(front).last(count), [&](std::size_t other) { return dominates(points[other], points[i]); });
    (is_beaten ? rest : front).push_back(i);
  }
  sorted = std::move(rest);
  return front;
}

Indices sorted_points(std::span<const GoalValues> points) {
  Indices sorted(points.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, {}, [&](std::size_t i) -> const GoalValues& { return points[i]; });
  return sorted;
}

using Points = std::vector<GoalValues>;

double volume(Points points, const GoalValues& corner);

// What `point` adds below `corner` to what `others` are not better than.
double added_volume(const GoalValues& point, std::span<const GoalValues> others, const GoalValues& corner) {
  double all = 1;
  for (std::size_t goal = 0; goal < point.size(); ++goal) all *= std::max(0.0, corner[goal] - point[goal]);
  Points shared;  // what of it the others have
  shared.reserve(others.size());
  for (const GoalValues& other : others) {
    GoalValues& worse = shared.emplace_back(point);
    for (std::size_t goal = 0; goal < point.size(); ++goal) worse[goal] = std::max(point[goal], other[goal]);
  }
  return all - volume(std::move(shared), corner);
}

// While, Bradstreet and Barone, "A Fast Way of Calculating Exact Hypervolumes" (2012). In place, as this
// takes most of the time of a search with several goals.
double volume(Points points, const GoalValues& corner) {
  std::ranges::sort(points);
  auto end = points.begin();  // of the front, which has equal points once
  for (GoalValues& point : points) {
    const auto is_before = [&point](const GoalValues& other) { return is_no_worse(other, point); };
    if (std::none_of(points.begin(), end, is_before)) std::swap(*end++, point);
  }
  double sum = 0;
  for (auto point = points.begin(); point != end; ++point)
    sum += added_volume(*point, std::span(point + 1, end), corner);
  return sum;
}

// Beyond the worst values of a front by a tenth of their range, so that those at its ends count.
GoalValues corner_of(std::span<const GoalValues> points, const Indices& front) {
  GoalValues corner;
  for (std::size_t goal = 0; goal < points[front[0]].size(); ++goal) {
    const auto value = [&](std::size_t i) { return points[i][goal]; };
    const double low = value(*std::ranges::min_element(front, {}, value)),
                 high = value(*std::ranges::max_element(front, {}, value));
    corner.push_back(high > low ? high + 0.1 * (high - low) : high + 1);
  }
  return corner;
}

// Moves points of a front to `best` until that has `count`: always the one that adds most.
void take_largest(std::span<const GoalValues> points, const Indices& front, std::size_t count,
                  Indices& best) {
  struct Candidate {
    double added;  // at most: it can only shrink as others are taken
    std::size_t place;
    bool operator<(const Candidate& other) const {
      return added != other.added ? added < other.added : place > other.place;
    }
  };
  const GoalValues corner = corner_of(points, front);
  Points taken;
  std::priority_queue<Candidate> candidates;
  for (std::size_t place = 0; place < front.size(); ++place)
    candidates.push({added_volume(points[front[place]], taken, corner), place});
  while (best.size() < count && !candidates.empty()) {
    Candidate next = candidates.top();
    candidates.pop();
    next.added = added_volume(points[front[next.place]], taken, corner);
    if (!candidates.empty() && next < candidates.top()) {
      candidates.push(next);
      continue;
    }
    best.push_back(front[next.place]);
    taken.push_back(points[front[next.place]]);
  }
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const GoalValues> points) {
  Indices sorted = sorted_points(points);
  return take_front(points, sorted);
}

std::vector<std::size_t> best_of_fronts(std::span<const GoalValues> points, std::size_t count) {
  Indices best, left = sorted_points(points);
  while (best.size() < count && !left.empty()) take_largest(points, take_front(points, left), count, best);
  return best;
}

}  // namespace sweep
