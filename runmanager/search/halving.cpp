#include "runmanager/search/halving.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/base/error.h"

namespace sweep {

Halving::Halving(std::size_t trials, int min_epochs, int max_epochs, int eta) {
  if (trials < 1) throw ConfigError("successive halving needs one trial at least");
  if (min_epochs < 1 || max_epochs < min_epochs)
    throw ConfigError("successive halving needs 1 <= min_epochs <= max_epochs, not " +
                      std::to_string(min_epochs) + " and " + std::to_string(max_epochs));
  if (eta < 2) throw ConfigError("successive halving needs eta >= 2, not " + std::to_string(eta));
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
  if (rung >= rungs_.size())
    throw std::out_of_range("there is no rung " + std::to_string(rung) + " of " +
                            std::to_string(rungs_.size()));
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

}  // namespace sweep
