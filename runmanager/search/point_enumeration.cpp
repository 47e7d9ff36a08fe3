#include "runmanager/search/point_enumeration.h"

#include <vector>

#include "runmanager/search/unit_scale.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxCombinations = 1'000'000;

std::vector<UnitScale> scales_of(const SearchDomain& domain) {
  return {domain.dimensions.begin(), domain.dimensions.end()};
}

}  // namespace

bool is_enumerable(const SearchDomain& domain) {
  std::size_t combinations = 1;
  for (const UnitScale& scale : scales_of(domain)) {
    if (scale.count() == 0 || scale.count() > kMaxCombinations / combinations) return false;
    combinations *= scale.count();
  }
  return true;
}

void for_each_point(const SearchDomain& domain, const std::function<void(const SearchPoint& point)>& use) {
  const std::vector<UnitScale> scales = scales_of(domain);
  std::vector<std::size_t> indices(scales.size(), 0);
  while (true) {
    SearchPoint values(scales.size());
    for (std::size_t d = 0; d < scales.size(); ++d) values[d] = scales[d].value_at(indices[d]);
    const SearchPoint point = without_inactive(domain, std::move(values));
    // Where combinations differ only in what does not exist, the first one counts.
    bool first = true;
    for (std::size_t d = 0; d < scales.size(); ++d) first = first && (point[d] || indices[d] == 0);
    if (first && (!domain.is_allowed || domain.is_allowed(point))) use(point);
    std::size_t d = scales.size();
    while (d > 0 && ++indices[d - 1] == scales[d - 1].count()) indices[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace sweep
