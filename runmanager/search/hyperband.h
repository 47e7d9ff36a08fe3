// Hyperband: successive halving several times, from many trials with few epochs to few trials with all of
// them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runmanager/search/halving.h"

namespace sweep {

/// Consecutive trials that are compared with each other alone.
struct HyperbandBracket {
  std::size_t first_trial = 0;  // its trials are first_trial .. first_trial + halving.rungs()[0].trials - 1
  Halving halving;
};

/// The brackets of Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization" (JMLR
/// 18, 2018): with S the largest number for which max_epochs / eta^S >= min_epochs, one for each s = S, ...,
/// 0, with ceil((S + 1) eta^s / (s + 1)) trials whose first rung ends at max_epochs / eta^s.
///
/// `trials`: brackets are repeated in this order until they have as many; the last one has what is left, at
/// least one. None: each once. Throws ConfigError for what Halving does and for `trials` = 0.
std::vector<HyperbandBracket> hyperband_brackets(int min_epochs, int max_epochs, int eta,
                                                 std::optional<std::size_t> trials = std::nullopt);

}  // namespace sweep
