// The metrics of an epoch, by their tags in TensorBoard: what early stopping may watch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// Which targets a metric is measured for.
enum class MetricTargets { kAny, kClasses, kManyClasses, kNumbers };

struct EpochMetric {
  std::string_view tag;  // "Loss/validation"
  bool largest_is_best;  // what "mode" is where it is not given: "max"
  bool of_validation;    // else of training
  MetricTargets targets;
};

/// Those of training, then those of validation.
std::span<const EpochMetric> epoch_metrics();
/// The metric with this tag, or nullptr.
const EpochMetric* find_epoch_metric(std::string_view tag);
std::vector<std::string> epoch_metric_tags();

}  // namespace sweep
