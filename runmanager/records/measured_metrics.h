// The metrics that sums over samples give.
#pragma once

#include <utility>
#include <vector>

#include "core/data/tensor_dataset.h"
#include "core/engine/engine.h"
#include "runmanager/config/metrics.h"

namespace sweep {

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
