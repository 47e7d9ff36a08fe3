// How much each setting of a search matters for a trial to be among the best; as a table, text and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runmanager/answers/statistics.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/results.h"

namespace sweep {

/// What one setting has to do with being among the best trials.
struct Importance {
  std::string key;
  double divergence = 0;      // of its values in the best trials from those in all; 0: they are alike
  double share = 0;           // of the sum over all settings, in [0, 1]
  bool may_be_chance = true;  // a setting without any influence would come as far in one case in 40
  std::size_t trials = 0;     // that have the setting
  std::string best = {};      // what the best trials have: "0.002 to 0.013", "adam in 8 of 10"
};

struct Importances {
  Goal goal;
  std::size_t trials = 0, best = 0;       // how many have ended, and how many of them count as the best
  std::vector<Importance> settings = {};  // the most important first
};

/// The importance of every setting that differs between the trials of `runs` that have ended. The best are
/// the best tenth by `goal`, but at least 10, at most half, and all that are equal to the last of them.
/// Pruned trials count as worse than completed ones, the earlier they ended the worse, and failed ones as the
/// worst. Throws ConfigError if fewer than 4 trials have ended, if no completed one has the metric, or if no
/// setting differs.
Importances importances_of(const std::vector<RunRecord>& runs, const Goal& goal);

/// As a table: a row per setting, the most important first. In CSV the shares are plain.
Answer answer_of(const Importances& importances, const TableStyle& style);

}  // namespace sweep
