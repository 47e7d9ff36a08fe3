#include "runmanager/search/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

std::vector<std::size_t> Halving::decide(std::size_t rung,
                                         std::span<const std::optional<double>> values) const {
  if (rung + 1 == rungs_.size()) return {};
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] && std::isfinite(*values[i])) best.push_back(i);
  std::ranges::stable_sort(best, {}, [&](std::size_t i) { return *values[i]; });
  best.resize(std::min(best.size(), rungs_[rung + 1].trials));
  std::ranges::sort(best);
  return best;
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

namespace {

// Why a trial does not go on after an epoch. Without any value there is no best one.
std::string ending_text(std::size_t good, const std::vector<std::optional<double>>& values, int epoch) {
  if (std::ranges::none_of(values, [](const auto& value) { return value && std::isfinite(*value); }))
    return fmt::format("none of the {} trials has a value of the metric after epoch {}, so none goes on",
                       values.size(), epoch);
  return fmt::format("not among the best {} of {} after epoch {}", good, values.size(), epoch);
}

}  // namespace

void Halving::play(SearchState& state, bool more, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const {
  // A space may have fewer points than the bracket has places.
  const std::size_t trials = state.until.size(),
                    places = std::min(rungs_[0].trials, trials - std::min(trials, first_trial_));
  std::vector<std::size_t> reached(places);
  std::iota(reached.begin(), reached.end(), first_trial_);
  for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
    const int until = rungs_[rung].epochs;
    bool is_complete = rung > 0 || !more || places == rungs_[0].trials;
    std::vector<std::optional<double>> values;
    for (const std::size_t i : reached) {
      const KnownResult known = result(i, until);
      is_complete &= known.is_known;
      values.push_back(known.value);
      state.until[i] = until;
    }
    if (!is_complete || rung + 1 == rungs_.size()) return;
    std::vector<std::size_t> good = decide(rung, values);
    const auto reaches = [&](const auto& value) { return value && reaches_target(*value); };
    if (std::ranges::any_of(values, reaches))
      std::erase_if(good, [&](std::size_t place) { return !reaches(values[place]); });
    const std::string ending = ending_text(good.size(), values, until);
    std::vector<std::size_t> next;
    for (std::size_t place = 0; place < reached.size(); ++place) {
      if (std::ranges::binary_search(good, place))
        next.push_back(reached[place]);
      else
        state.ended[reached[place]] = ending;
    }
    reached = std::move(next);
  }
}

}  // namespace sweep
