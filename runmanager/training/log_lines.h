// The lines of log.txt that tell how good a network is.
#pragma once

#include <map>
#include <string>

#include "runmanager/records/results.h"

namespace sweep {

/// "epoch 2: loss 0.5, accuracy 0.85, validation loss 0.6, accuracy 0.8, 1.2 s, 50k images/s".
std::string epoch_text(const EpochRecord& epoch);

/// "loss 0.5, accuracy 0.85": what the metrics of a run say of its test set.
std::string test_text(const std::map<std::string, double>& metrics);

}  // namespace sweep
