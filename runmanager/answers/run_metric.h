// One number for a run, by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// The time of an epoch without what only the first one has: caches to fill, kernels to choose.
inline constexpr std::string_view kEpochSeconds = "epoch_seconds";

/// The metric `name` of `run`: "epoch_seconds" and "data_wait_seconds" are medians over the epochs after the
/// first, or those of the only one, and "images_per_second" likewise; "run_seconds" and "setup_seconds" are
/// of the whole run; "loss", "accuracy" and those of the validation are of the last epoch; everything else is
/// an entry of RunRecord::metrics, such as "test_accuracy". None where the run has no such value.
std::optional<double> run_metric(const RunRecord& run, std::string_view name);

/// Names of all metrics that any of `runs` has, times first.
std::vector<std::string> metric_names(const std::vector<const RunRecord*>& runs);

/// What tells how good a run is, if nobody says: the validation accuracy, or the first of those that come
/// after it that any of `runs` has. "loss" at last.
std::string default_metric(const std::vector<const RunRecord*>& runs);

/// Whether `name` is a time, of which a ratio tells more than a difference.
bool is_time(std::string_view name);

/// Images per second, accuracies and R² are the better the larger they are; of times, losses and other errors
/// it is the smaller.
bool larger_is_better(std::string_view name);

/// "12.34%", "0.1234", "1.4 s", "12.3k": a value of the metric `name` as people read it; "-" for none.
std::string metric_text(const std::optional<double>& value, std::string_view name);

}  // namespace sweep
