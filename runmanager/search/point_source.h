// Points that are neither known nor left out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runmanager/search/sampler.h"
#include "runmanager/search/unit_random.h"
#include "runmanager/search/unit_scale.h"

namespace sweep {

/// A domain with the scales of its dimensions. Immutable, thread-safe as its functions are.
class PointSource {
 public:
  /// Throws what check_domain() throws.
  explicit PointSource(SearchDomain domain);

  const SearchDomain& domain() const { return domain_; }
  const std::vector<UnitScale>& scales() const { return scales_; }

  /// The point at a place of the unit cube, one number per dimension; without dimensions that it does not
  /// have.
  SearchPoint at(std::span<const double> unit) const;

  /// Whether a point may be proposed: it is not left out and differs from all `earlier` ones.
  bool is_new(const SearchPoint& point, std::span<const Observation> earlier) const;

  /// Removes from `points` those that are not new, in one pass over `earlier`.
  void keep_new(std::vector<SearchPoint>& points, std::span<const Observation> earlier) const;

  /// A new random point, each as likely as its cells are large; none as Sampler::suggest() says.
  std::optional<SearchPoint> random_point(UnitRandom& random, std::span<const Observation> earlier) const;

  /// All new points of an enumerable domain; none of another.
  std::vector<SearchPoint> points_left(std::span<const Observation> earlier) const;

 private:
  SearchDomain domain_;
  std::vector<UnitScale> scales_;
  bool enumerable_;
};

}  // namespace sweep
