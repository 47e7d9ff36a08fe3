#include "runmanager/search/sampler.h"

#include <algorithm>
#include <utility>

namespace sweep {
namespace {

constexpr int kDrawsOfGivenPoint = 100;  // of what it leaves open, before another point is drawn
constexpr int kDraws = 100;              // before all points of a small space are listed
constexpr int kDrawsOfLarge = 10'000;    // before a space that cannot be listed is given up

SearchDomain checked(SearchDomain domain) {
  check_domain(domain);
  return domain;
}

}  // namespace

Sampler::Sampler(SearchDomain domain, SamplerOptions options)
    : domain_(checked(std::move(domain))),
      options_(std::move(options)),
      scales_(domain_.dimensions.begin(), domain_.dimensions.end()),
      enumerable_(is_enumerable(domain_)) {}

std::optional<SearchPoint> Sampler::suggest(std::size_t trial, Earlier earlier) const {
  if (trial < options_.points.size()) {
    UnitRandom drawn = random(trial, SearchDraw::kPoint);
    for (int draw = 0; draw < kDrawsOfGivenPoint; ++draw) {
      SearchPoint point = completed(options_.points[trial], drawn);
      if (is_new(point, earlier)) return point;
    }
  }
  return options_.learns ? tpe_point(trial, earlier)
                         : random_point(random(trial, SearchDraw::kPoint), earlier);
}

SearchPoint Sampler::completed(SearchPoint point, UnitRandom& drawn) const {
  for (std::size_t d = 0; d < point.size(); ++d) {
    const double unit = drawn.unit();
    if (!point[d]) point[d] = scales_[d].value(unit);
  }
  return without_inactive(domain_, std::move(point));
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
  std::vector<double> unit(scales_.size());
  for (int draw = 0; draw < (enumerable_ ? kDraws : kDrawsOfLarge); ++draw) {
    std::ranges::generate(unit, [&] { return drawn.unit(); });
    SearchPoint point = at(unit);
    if (is_new(point, earlier)) return point;
  }
  std::vector<SearchPoint> left = points_left(earlier);
  if (left.empty()) return std::nullopt;
  return std::move(left[drawn.below(left.size())]);
}

std::vector<SearchPoint> Sampler::points_left(Earlier earlier) const {
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
