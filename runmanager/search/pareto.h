// Points that none other beats in several goals at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sweep {

/// A value per goal; smaller is better, and all are finite. Points that are compared have equally many goals.
using GoalValues = std::vector<double>;

/// The indices of the points that no other one dominates: is nowhere worse than and somewhere better. Sorted
/// by the first goal, then by the next ones, then by index; of equal points all are there.
std::vector<std::size_t> pareto_front(std::span<const GoalValues> points);

/// The indices of the best `count` points, the best one first: the front, then the front of the others, and
/// so on. Within a front, each next one adds most to the hypervolume of those before it.
std::vector<std::size_t> best_of_fronts(std::span<const GoalValues> points, std::size_t count);

}  // namespace sweep
