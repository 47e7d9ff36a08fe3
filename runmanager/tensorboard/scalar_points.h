// Which numbers of a run's record are points of which chart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runmanager/records/results.h"
#include "tbwriter/writer_options.h"

namespace sweep {

/// A tag that every epoch has one point of.
inline constexpr const char* kEpochTag = "Loss/train";

/// The points of an epoch. TensorBoard's page of hyperparameters ticks the first five metrics by name, and
/// can colour by these only: accuracies, Duration/epoch_seconds and a loss. What has a name between them is
/// to sort behind. At the epoch's step. Tags are literals. What was not measured has no point.
std::vector<tbwriter::ScalarPoint> epoch_points(const EpochRecord& epoch);

/// The points of RunRecord::metrics, at the last epoch's step: "test_loss" is Loss/test. Metrics with other
/// names have none. Tags are literals.
std::vector<tbwriter::ScalarPoint> metric_points(const std::map<std::string, double>& metrics);

}  // namespace sweep
