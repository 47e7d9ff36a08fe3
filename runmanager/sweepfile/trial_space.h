// The axes of a sweep file as a space that a search draws points from, and the values of a point.
#pragma once

#include <memory>
#include <vector>

#include "runmanager/search/search_space.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/sweepfile/expand.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Immutable; thread-safe.
class TrialSpace {
 public:
  /// `space` has one grid. `base` is the file; conditions may test its plain values.
  TrialSpace(SearchSpace space, JsonNode base);

  const std::vector<Axis>& axes() const { return space_.grids[0].axes; }
  /// The domain keeps `self` alive.
  static SearchDomain domain_of(const std::shared_ptr<const TrialSpace>& self);
  /// The keys that exist at the point, with their values; in the order of the file.
  std::vector<Assignment> values_of(const SearchPoint& point) const;

 private:
  bool holds(const std::vector<Condition>& conditions, const std::vector<Assignment>& values) const;
  bool exists(std::size_t axis, const std::vector<Assignment>& values) const;
  bool is_allowed(const SearchPoint& point) const;

  SearchSpace space_;
  JsonNode base_;
};

}  // namespace sweep
