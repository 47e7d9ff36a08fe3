#include "runmanager/terminal/best_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sweep {
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs) {
  // (accuracy, −loss) on the validation set, else on the training set; never one compared with the other. For
  // numbers −RMSE takes the place of the accuracy, since losses of different runs may be of different kinds.
  const auto score_of = [](const std::optional<double>& accuracy, const Measures& measures) {
    if (accuracy) return accuracy;
    return measures[kRmse] ? std::optional(-*measures[kRmse]) : std::nullopt;
  };
  const auto validation_score = [&](const EpochRecord& e) {
    return score_of(e.validation_accuracy, e.validation_measures);
  };
  const bool validated = std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    return run.status == RunStatus::kCompleted && last_epoch(run) != nullptr &&
           validation_score(*last_epoch(run));
  });
  std::optional<std::size_t> best;
  std::pair<double, double> best_score;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const EpochRecord* last = last_epoch(runs[i]);
    if (runs[i].status != RunStatus::kCompleted || last == nullptr) continue;
    if (validated && !validation_score(*last)) continue;
    const double accuracy =
        (validated ? validation_score(*last) : score_of(last->accuracy, last->measures)).value_or(0);
    const double loss = validated && last->validation_loss ? *last->validation_loss : last->loss;
    const std::pair<double, double> score = {accuracy, -loss};
    if (std::isnan(accuracy) || std::isnan(loss)) continue;
    if (!best || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

std::string best_run_means(const std::vector<RunRecord>& runs) {
  bool validated = false, numbers = true;
  for (const RunRecord& run : runs) {
    const EpochRecord* last = last_epoch(run);
    if (run.status != RunStatus::kCompleted || last == nullptr) continue;
    validated |= last->validation_accuracy || last->validation_measures[kRmse];
    numbers &= !last->accuracy;
  }
  return fmt::format("{} {}", numbers ? "lowest" : "highest",
                     numbers ? (validated ? "RMSE on the validation set" : "RMSE on the training set")
                             : (validated ? "validation accuracy" : "training accuracy"));
}

}  // namespace sweep
