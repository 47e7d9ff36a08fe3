// A training has diverged once a loss or a weight is infinite or NaN: nothing that follows is of any use.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "runmanager/records/checkpoint.h"

namespace sweep {

class DivergedError : public TrainingError {
 public:
  using TrainingError::TrainingError;
};

/// The position in a training, for messages.
struct TrainingPlace {
  int epoch = 1;                    // from 1
  std::int64_t begin = 0, end = 0;  // batches of the epoch, from 0, that the totals are of: begin … end − 1
  double lr = 0;
};

/// Throws DivergedError unless the loss of these training batches is finite.
void check_training_loss(const Totals& totals, const TrainingPlace& place);
/// The same for the samples of another part after an epoch: "validation", "test".
void check_evaluation_loss(const Totals& totals, std::string_view part, const TrainingPlace& place);
/// The same for the weights. The loss of a batch is that before its update, so only the weights tell what an
/// epoch's last update has done.
void check_weights(const Weights& weights, const TrainingPlace& place);

}  // namespace sweep
