// Which run of a sweep is the best one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// The index of the completed run with the highest validation accuracy in its last epoch, or nullopt if there
/// is none. If no run has a validation set, training accuracy counts; where targets are numbers, the lowest
/// RMSE. Among equals the lower loss wins.
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs);

/// What best_run() goes by: "highest validation accuracy".
std::string best_run_means(const std::vector<RunRecord>& runs);

}  // namespace sweep
