#include "runmanager/search/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sweep {
namespace {

constexpr double kResampled = 0.25, kSmaller = 0.8, kLarger = 1.2;
constexpr int kDrawsOfCopy = 100;  // before a copy has its parent's point, as all others are left out

double explored(const Dimension& dimension, double value, UnitRandom& random) {
  const bool is_resampled = random.unit() < kResampled, grows = random.unit() < 0.5;
  const bool has_order = dimension.kind != DimensionKind::kChoice || dimension.ordered;
  if (is_resampled || !has_order) return UnitScale(dimension).value(random.unit());
  const double step = grows ? 1 : -1;
  if (dimension.kind == DimensionKind::kChoice) return rounded(dimension, value + step);
  const double other = rounded(dimension, value * (grows ? kLarger : kSmaller));
  return has_integers(dimension.kind) && other == value ? rounded(dimension, value + step) : other;
}

std::size_t replaced_of(const Population& population) {
  return population.members < 2 ? 0 : std::max<std::size_t>(population.members / population.reduction, 1);
}

}  // namespace

std::size_t Population::total() const {
  return members + replaced_of(*this) * static_cast<std::size_t>((epochs - 1) / interval);
}

SearchState Population::play(std::size_t trials, const ResultOfTrial& result,
                             const ReachesTarget& reaches_target) const {
  SearchState state(trials);
  std::vector<std::size_t> current(members);
  std::iota(current.begin(), current.end(), std::size_t{0});
  for (int epoch = std::min(interval, epochs);; epoch = std::min(epoch + interval, epochs)) {
    if (std::ranges::any_of(current, [trials](std::size_t member) { return member >= trials; })) return state;
    for (const std::size_t member : current) state.until[member] = epoch;
    if (epoch == epochs) return state;
    const std::string reason = fmt::format("among the worst of {} after epoch {}", members, epoch);
    std::vector<std::pair<double, std::size_t>> ranks;  // value and place in `current`, the best one first
    for (std::size_t place = 0; place < current.size(); ++place) {
      const KnownResult known = result(current[place], epoch);
      if (!known.is_known) return state;
      ranks.emplace_back(known.value.value_or(std::numeric_limits<double>::infinity()), place);
    }
    std::ranges::sort(ranks);
    if (reaches_target(ranks[0].first)) {
      for (const auto& [value, place] : ranks) {
        if (reaches_target(value))
          state.until[current[place]] = epochs;
        else
          state.ended[current[place]] = reason;
      }
      return state;
    }
    const auto good = static_cast<std::size_t>(
        std::ranges::count_if(ranks, [](const auto& rank) { return std::isfinite(rank.first); }));
    // At most half are replaced, so that no parent is.
    for (std::size_t i = 0; good > 0 && i < replaced_of(*this); ++i) {
      std::size_t& last = current[ranks[ranks.size() - 1 - i].second];
      state.ended[last] = reason;
      state.copies.push_back({.parent = current[ranks[i % good].second], .epoch = epoch});
      last = members + state.copies.size() - 1;
    }
  }
}

SearchPoint explored_point(const SearchDomain& domain, const SearchPoint& parent, UnitRandom& random) {
  for (int draw = 0; draw < kDrawsOfCopy; ++draw) {
    SearchPoint point = parent;
    for (std::size_t d = 0; d < point.size(); ++d) {
      const Dimension& dimension = domain.dimensions[d];
      // One that does not exist in the parent may exist in the copy.
      point[d] =
          point[d] ? explored(dimension, *point[d], random) : UnitScale(dimension).value(random.unit());
    }
    point = without_inactive(domain, std::move(point));
    if (!domain.is_allowed || domain.is_allowed(point)) return point;
  }
  return parent;
}

}  // namespace sweep
