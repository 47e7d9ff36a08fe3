#include "runmanager/config/search_spec.h"

#include <algorithm>

namespace sweep {

std::vector<HyperbandBracket> search_brackets(const SearchSpec& search, std::size_t trials, int epochs) {
  if (search.method == SearchMethod::kHyperband) {
    return hyperband_brackets(search.min_epochs, epochs, search.reduction,
                              search.trials > 0 ? std::optional(search.trials) : std::nullopt);
  }
  if (search.method != SearchMethod::kHalving) return {};
  return {{.first_trial = 0, .halving = Halving(trials, search.min_epochs, epochs, search.reduction)}};
}

std::size_t points_at_start(const SearchSpec& search, int epochs) {
  if (search.method == SearchMethod::kTpe) return std::min(search.at_once, search.trials);
  if (search.method != SearchMethod::kHyperband) return search.trials;
  const HyperbandBracket last = search_brackets(search, 0, epochs).back();
  return last.first_trial + last.halving.rungs()[0].trials;
}

}  // namespace sweep
