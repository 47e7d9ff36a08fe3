// Domains that several tests search.
#pragma once

#include <cmath>

#include "runmanager/search/search_space.h"

namespace sweep::test {

/// A dimension of every kind, two of them conditional, one of these on the other, and a rule.
inline SearchDomain domain_of_all_kinds() {
  using enum DimensionKind;
  SearchDomain domain{.dimensions = {{.kind = kUniform, .low = -1, .high = 2},
                                     {.kind = kLogUniform, .low = 1e-5, .high = 0.1},
                                     {.kind = kInteger, .low = -3, .high = 12},
                                     {.kind = kLogInteger, .low = 4, .high = 1000},
                                     {.kind = kChoice, .choices = 3},
                                     {.kind = kChoice, .choices = 5, .ordered = true}}};
  // Dimension 2 exists with choice 1, dimension 3 with a dimension 2 above 0.
  domain.is_active = [](const SearchPoint& point, std::size_t d) {
    if (d == 2) return point[4] == 1.0;
    if (d == 3) return point[2] && *point[2] > 0;
    return true;
  };
  domain.is_allowed = [](const SearchPoint& point) { return point[4] != 2.0 || *point[5] > 1; };
  return domain;
}

/// 3 × 4 values, but those of the second dimension only with the first one's value 0, and not value 2: 3 + 2
/// points.
inline SearchDomain domain_of_five_points() {
  SearchDomain domain{.dimensions = {{.kind = DimensionKind::kChoice, .choices = 3},
                                     {.kind = DimensionKind::kInteger, .low = 1, .high = 4}}};
  domain.is_active = [](const SearchPoint& point, std::size_t d) { return d == 0 || point[0] == 0.0; };
  domain.is_allowed = [](const SearchPoint& point) { return point[1] != 2.0; };
  return domain;
}

}  // namespace sweep::test
