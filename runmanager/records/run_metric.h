// The values of metrics: one number for a run, by the name of a metric; and those that sums over samples
// give.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/tensor_dataset.h"
#include "core/engine/engine.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/results.h"

namespace sweep {

inline constexpr std::string_view kEpochSeconds = "epoch_seconds";

/// The values that are the run's: those of the epoch whose weights are kept as the best, or else of the last
/// one; of metrics that it does not have, those of the latest epoch before it that has. None before the first
/// has finished.
std::optional<EpochRecord> result_values(const RunRecord& run);

/// The metric of `run`. Times and rates of epochs are medians over those after the first, which also fills
/// caches, or of the only one. "run_seconds" and "setup_seconds" are of the whole run.
/// Those of training and validation are of result_values(); everything else is an entry of
/// RunRecord::metrics, such as "test_accuracy", or kParameters of its provenance. None where the run has no
/// such value.
std::optional<double> run_metric(const RunRecord& run, const Metric& metric);
/// The same by its key.
std::optional<double> run_metric(const RunRecord& run, std::string_view key);

/// Keys of all metrics that any of `runs` has, times first. Counts are left out.
std::vector<std::string> metric_names(const std::vector<const RunRecord*>& runs);

/// Always names a parameter, whatever else has the name after it: "param.loss".
inline constexpr std::string_view kParamPrefix = "param.";
/// The title of a parameter's column in a table that also has the columns `others`: its key, with
/// kParamPrefix if one of them has that name.
std::string param_title(const std::string& key, const std::vector<std::string>& others);

/// Whether the metric is a time.
inline bool is_time(const Metric& metric) { return metric.unit == MetricUnit::kSeconds; }

/// The middle value, or the mean of the two in the middle. None for no values.
std::optional<double> median_of(std::vector<double> values);

/// The metrics of a part of the data: loss and, as the targets are, accuracy and the number of correct ones;
/// accuracy within the five largest outputs, for more than ten classes; or, over all numbers together, the
/// mean absolute error, the root of the mean squared error, and the coefficient of determination,
/// 1 − Σ (prediction − target)² / Σ (target − mean of its column)². Without samples the first two are NaN.
/// `variation`: of the same samples' targets; 0: not known, or there is none.
std::vector<std::pair<const Metric*, double>> measured_metrics(const Totals& totals, double variation,
                                                               MetricPart part);

/// Σ (target − mean of its column)² over the samples; 0 for classes.
double target_variation(const Subset& samples);

}  // namespace sweep
