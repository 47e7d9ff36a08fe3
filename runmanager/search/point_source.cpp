#include "runmanager/search/point_source.h"

#include <algorithm>
#include <utility>

#include "runmanager/search/search_space.h"

namespace sweep {
namespace {

constexpr int kDraws = 100;            // before all points of a small space are listed
constexpr int kDrawsOfLarge = 10'000;  // before a space that cannot be listed is given up

SearchDomain checked(SearchDomain domain) {
  check_domain(domain);
  return domain;
}

}  // namespace

PointSource::PointSource(SearchDomain domain)
    : domain_(checked(std::move(domain))),
      scales_(domain_.dimensions.begin(), domain_.dimensions.end()),
      enumerable_(is_enumerable(domain_)) {}

SearchPoint PointSource::at(std::span<const double> unit) const {
  SearchPoint point(scales_.size());
  for (std::size_t d = 0; d < scales_.size(); ++d) point[d] = scales_[d].value(unit[d]);
  return without_inactive(domain_, std::move(point));
}

bool PointSource::is_new(const SearchPoint& point, std::span<const Observation> earlier) const {
  if (std::ranges::any_of(earlier, [&](const Observation& other) { return other.point == point; }))
    return false;
  return !domain_.is_allowed || domain_.is_allowed(point);
}

void PointSource::keep_new(std::vector<SearchPoint>& points, std::span<const Observation> earlier) const {
  if (domain_.is_allowed)
    std::erase_if(points, [&](const SearchPoint& point) { return !domain_.is_allowed(point); });
  for (const Observation& other : earlier)
    std::erase_if(points, [&](const SearchPoint& point) { return other.point == point; });
}

std::optional<SearchPoint> PointSource::random_point(UnitRandom& random,
                                                     std::span<const Observation> earlier) const {
  std::vector<double> unit(scales_.size());
  for (int draw = 0; draw < (enumerable_ ? kDraws : kDrawsOfLarge); ++draw) {
    std::ranges::generate(unit, [&] { return random.unit(); });
    SearchPoint point = at(unit);
    if (is_new(point, earlier)) return point;
  }
  std::vector<SearchPoint> left = points_left(earlier);
  if (left.empty()) return std::nullopt;
  return std::move(left[random.below(left.size())]);
}

std::vector<SearchPoint> PointSource::points_left(std::span<const Observation> earlier) const {
  std::vector<SearchPoint> left;
  if (!enumerable_) return left;
  std::vector<const SearchPoint*> known;
  for (const Observation& observation : earlier) known.push_back(&observation.point);
  const auto dereferenced = [](const SearchPoint* point) -> const SearchPoint& { return *point; };
  std::ranges::sort(known, {}, dereferenced);
  for_each_point(domain_, [&](const SearchPoint& point) {
    if (!std::ranges::binary_search(known, point, {}, dereferenced)) left.push_back(point);
  });
  return left;
}

}  // namespace sweep
