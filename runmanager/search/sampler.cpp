#include "runmanager/search/sampler.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sweep {
namespace {

constexpr int kDrawsOfGivenPoint = 100;  // of what it leaves open, before another point is drawn
constexpr int kDraws = 100;              // before all points of a small space are listed
constexpr int kDrawsOfLarge = 10'000;    // before a space that cannot be listed is given up

}  // namespace

Sampler::Sampler(SearchDomain domain, SamplerOptions options)
    : domain_(std::move(domain)),
      options_(std::move(options)),
      scales_(domain_.dimensions.begin(), domain_.dimensions.end()),
      enumerable_(is_enumerable(domain_)) {}

std::optional<SearchPoint> Sampler::suggest(std::size_t trial, Earlier earlier) const {
  if (trial < options_.points.size()) {
    UnitRandom drawn = random(trial, SearchDraw::kPoint);
    if (auto point = completed(options_.points[trial], kDrawsOfGivenPoint, drawn, earlier)) return point;
  }
  return options_.learns ? tpe_point(trial, earlier)
                         : random_point(random(trial, SearchDraw::kPoint), earlier);
}

std::optional<SearchPoint> Sampler::completed(const SearchPoint& given, int draws, UnitRandom& drawn,
                                              Earlier earlier) const {
  std::optional<SearchPoint> other;  // without all that is given
  for (int draw = 0; draw < draws; ++draw) {
    SearchPoint point = given;
    for (std::size_t d = 0; d < point.size(); ++d) {
      const double unit = drawn.unit();
      if (!point[d]) point[d] = scales_[d].value(unit);
    }
    point = without_inactive(domain_, std::move(point));
    if (!is_new(point, earlier)) continue;
    const bool has_all = std::ranges::equal(
        given, point, [](const auto& asked, const auto& there) { return !asked || there; });
    if (has_all) return point;
    if (!other) other = std::move(point);
  }
  return other;
}

SearchPoint Sampler::at(std::span<const double> unit) const {
  SearchPoint point(scales_.size());
  for (std::size_t d = 0; d < scales_.size(); ++d) point[d] = scales_[d].value(unit[d]);
  return without_inactive(domain_, std::move(point));
}

bool Sampler::is_new(const SearchPoint& point, Earlier earlier) const {
  if (std::ranges::any_of(earlier, [&](const Observation& other) { return other.point == point; }))
    return false;
  return !domain_.is_allowed || domain_.is_allowed(point);
}

std::optional<SearchPoint> Sampler::random_point(UnitRandom drawn, Earlier earlier) const {
  const SearchPoint nothing(scales_.size());
  if (auto point = completed(nothing, enumerable_ ? kDraws : kDrawsOfLarge, drawn, earlier)) return point;
  if (!enumerable_) return std::nullopt;
  std::set<SearchPoint> known;
  for (const Observation& observation : earlier) known.insert(observation.point);
  std::vector<SearchPoint> left = all_points(domain_);
  std::erase_if(left, [&](const SearchPoint& point) { return known.contains(point); });
  if (left.empty()) return std::nullopt;
  return std::move(left[drawn.below(left.size())]);
}

}  // namespace sweep
