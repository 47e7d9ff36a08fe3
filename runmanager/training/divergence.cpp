#include "runmanager/training/divergence.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "runmanager/training/evaluation.h"

namespace sweep {
namespace {

[[noreturn]] void throw_diverged(const TrainingPlace& place, const std::string& what) {
  throw DivergedError(
      fmt::format("diverged at epoch {}{}; try a smaller lr than {}", place.epoch, what, place.lr));
}

}  // namespace

void check_training_loss(const Totals& totals, const TrainingPlace& place) {
  if (std::isfinite(totals.loss)) return;
  const std::string batches = place.end - place.begin == 1
                                  ? fmt::format("batch {}", place.end)
                                  : fmt::format("one of batches {} to {}", place.begin + 1, place.end);
  throw_diverged(place, fmt::format(", {}: the loss is {}", batches, totals.loss));
}

void check_evaluation_loss(const Totals& totals, std::string_view part, const TrainingPlace& place) {
  if (std::isfinite(totals.loss)) return;
  throw_diverged(place,
                 fmt::format(": the {} loss is {}", part, totals.loss / static_cast<double>(totals.samples)));
}

void check_weights(const Weights& weights, const TrainingPlace& place) {
  const std::size_t count = count_non_finite(weights);
  if (count == 0) return;
  throw_diverged(place, fmt::format(": after its last batch {} of {} weights are not finite", count,
                                    weights.parameters.size() + weights.buffers.size()));
}

}  // namespace sweep
