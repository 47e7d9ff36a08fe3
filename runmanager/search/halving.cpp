#include "runmanager/search/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace sweep {

Halving::Halving(std::size_t trials, int min_epochs, int max_epochs, int eta, std::size_t first_trial)
    : first_trial_(first_trial) {
  // power = eta^s. 64 bits: it stays below max_epochs, which has 31, and so does eta.
  const auto most = static_cast<std::uint64_t>(max_epochs);
  const auto factor = static_cast<std::uint64_t>(eta);
  std::uint64_t power = 1;
  while (power * factor <= trials && power * factor * static_cast<std::uint64_t>(min_epochs) <= most)
    power *= factor;
  std::uint64_t divisor = 1;
  for (; power >= 1; power /= factor, divisor *= factor)
    rungs_.push_back({.trials = static_cast<std::size_t>(trials / divisor),
                      .epochs = static_cast<int>((2 * most + power) / (2 * power))});
}

std::size_t Halving::total_epochs() const {
  std::size_t total = 0;
  int before = 0;
  for (const Rung& rung : rungs_) {
    total += rung.trials * static_cast<std::size_t>(rung.epochs - before);
    before = rung.epochs;
  }
  return total;
}

std::vector<Halving> hyperband_brackets(int min_epochs, int max_epochs, int eta,
                                        std::optional<std::size_t> trials) {
  // As many rungs as with any number of trials.
  const Halving deepest(std::numeric_limits<std::size_t>::max(), min_epochs, max_epochs, eta);
  const std::size_t brackets = deepest.rungs().size();
  std::vector<std::uint64_t> powers{1};
  while (powers.size() < brackets) powers.push_back(powers.back() * static_cast<std::uint64_t>(eta));

  std::vector<Halving> result;
  std::size_t first = 0;
  do {
    for (std::size_t rungs = brackets; rungs >= 1 && first < trials.value_or(~std::size_t{0}); --rungs) {
      const std::uint64_t power = powers[rungs - 1];
      const auto whole = static_cast<std::size_t>((brackets * power + rungs - 1) / rungs);
      const std::size_t count = trials ? std::min(whole, *trials - first) : whole;
      // The last max_epochs / power >= least gives as many rungs as the bracket has.
      const auto least = static_cast<int>(static_cast<std::uint64_t>(max_epochs) / power);
      result.emplace_back(count, least, max_epochs, eta, first);
      first += count;
    }
  } while (trials && first < *trials);
  return result;
}

void Halving::play(SearchState& state, bool more, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const {
  // A space may have fewer points than the bracket has places.
  const std::size_t trials = state.until.size(),
                    places = std::min(rungs_[0].trials, trials - std::min(trials, first_trial_));
  std::vector<std::size_t> reached(places);
  std::iota(reached.begin(), reached.end(), first_trial_);
  bool is_complete = !more || places == rungs_[0].trials;
  for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
    const int until = rungs_[rung].epochs;
    std::vector<std::pair<double, std::size_t>> good;  // value and trial, at last the best ones, sorted
    for (const std::size_t i : reached) {
      const KnownResult known = result(i, until);
      is_complete &= known.is_known;
      if (known.value) good.emplace_back(*known.value, i);
      state.until[i] = until;
    }
    if (!is_complete || rung + 1 == rungs_.size()) return;
    std::ranges::sort(good);
    good.resize(std::min(good.size(), rungs_[rung + 1].trials));
    if (!good.empty() && reaches_target(good[0].first))
      std::erase_if(good, [&](const auto& trial) { return !reaches_target(trial.first); });
    // Without any value there is no best one.
    const std::string ending =
        good.empty()
            ? fmt::format("none of the {} trials has a value of the metric after epoch {}, so none goes on",
                          reached.size(), until)
            : fmt::format("not among the best {} of {} after epoch {}", good.size(), reached.size(), until);
    for (const std::size_t i : reached) state.ended[i] = ending;
    reached.clear();
    for (const auto& [value, i] : good) {
      state.ended[i].clear();
      reached.push_back(i);
    }
    std::ranges::sort(reached);
  }
}

}  // namespace sweep
