#include "runmanager/config/epoch_metrics.h"

#include <algorithm>
#include <array>

namespace sweep {
namespace {

using enum MetricTargets;

constexpr std::array<EpochMetric, 14> kEpochMetrics = {
    {{"Loss/train", false, false, kAny},
     {"Accuracy/train", true, false, kClasses},
     {"Number Correct/train", true, false, kClasses},
     {"Top-5 Accuracy/train", true, false, kManyClasses},
     {"MAE/train", false, false, kNumbers},
     {"RMSE/train", false, false, kNumbers},
     {"R2/train", true, false, kNumbers},
     {"Loss/validation", false, true, kAny},
     {"Accuracy/validation", true, true, kClasses},
     {"Number Correct/validation", true, true, kClasses},
     {"Top-5 Accuracy/validation", true, true, kManyClasses},
     {"MAE/validation", false, true, kNumbers},
     {"RMSE/validation", false, true, kNumbers},
     {"R2/validation", true, true, kNumbers}}};

}  // namespace

std::span<const EpochMetric> epoch_metrics() { return kEpochMetrics; }

const EpochMetric* find_epoch_metric(std::string_view tag) {
  const auto* const found = std::ranges::find(kEpochMetrics, tag, &EpochMetric::tag);
  return found == kEpochMetrics.end() ? nullptr : found;
}

std::vector<std::string> epoch_metric_tags() {
  std::vector<std::string> tags;
  tags.reserve(kEpochMetrics.size());
  for (const EpochMetric& metric : kEpochMetrics) tags.emplace_back(metric.tag);
  return tags;
}

}  // namespace sweep
