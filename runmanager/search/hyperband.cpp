#include "runmanager/search/hyperband.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/error.h"

namespace sweep {

std::vector<HyperbandBracket> hyperband_brackets(int min_epochs, int max_epochs, int eta,
                                                 std::optional<std::size_t> trials) {
  if (trials == std::size_t{0}) throw ConfigError("hyperband needs one trial at least");
  // As many rungs as with any number of trials; also checks the arguments.
  const Halving deepest(std::numeric_limits<std::size_t>::max(), min_epochs, max_epochs, eta);
  const std::size_t brackets = deepest.rungs().size();
  std::vector<std::uint64_t> powers{1};
  while (powers.size() < brackets) powers.push_back(powers.back() * static_cast<std::uint64_t>(eta));

  std::vector<HyperbandBracket> result;
  std::size_t first = 0;
  do {
    for (std::size_t rungs = brackets; rungs >= 1 && first < trials.value_or(~std::size_t{0}); --rungs) {
      const std::uint64_t power = powers[rungs - 1];
      const auto whole = static_cast<std::size_t>((brackets * power + rungs - 1) / rungs);
      const std::size_t count = trials ? std::min(whole, *trials - first) : whole;
      // The last max_epochs / power >= least gives as many rungs as the bracket has.
      const auto least = static_cast<int>(static_cast<std::uint64_t>(max_epochs) / power);
      result.push_back({.first_trial = first, .halving = Halving(count, least, max_epochs, eta)});
      first += count;
    }
  } while (trials && first < *trials);
  return result;
}

}  // namespace sweep
