#include "runmanager/answers/run_metric.h"

#include <algorithm>
#include <array>

#include "runmanager/answers/statistics.h"

namespace sweep {
namespace {

using EpochValue = double (*)(const EpochRecord&);

std::optional<double> steady_median(const RunRecord& run, EpochValue value) {
  std::vector<double> values;
  for (std::size_t i = run.epochs.size() > 1 ? 1 : 0; i < run.epochs.size(); ++i)
    values.push_back(value(run.epochs[i]));
  return median_of(std::move(values));
}

std::optional<double> epoch_seconds(const RunRecord& run) {
  return steady_median(run, [](const EpochRecord& epoch) { return epoch.epoch_seconds; });
}

std::optional<double> images_per_second(const RunRecord& run) {
  return steady_median(run, [](const EpochRecord& epoch) { return epoch.images_per_second; });
}

std::optional<double> data_wait_seconds(const RunRecord& run) {
  return steady_median(run, [](const EpochRecord& epoch) { return epoch.data_wait_seconds; });
}

// Of the last epoch.
template <auto Field>
std::optional<double> last(const RunRecord& run) {
  return run.epochs.empty() ? std::nullopt : std::optional<double>(run.epochs.back().*Field);
}

struct Measure {
  std::string_view name;
  std::optional<double> (*of)(const RunRecord& run);
  bool is_time;
};

constexpr std::array<Measure, 9> kMeasures = {{
    {kEpochSeconds, epoch_seconds, true},
    {"images_per_second", images_per_second, false},
    {"data_wait_seconds", data_wait_seconds, true},
    {"setup_seconds", [](const RunRecord& run) { return run.setup_seconds; }, true},
    {"run_seconds", [](const RunRecord& run) { return run.run_seconds; }, true},
    {"loss", last<&EpochRecord::loss>, false},
    {"accuracy", last<&EpochRecord::accuracy>, false},
    {"validation_loss", last<&EpochRecord::validation_loss>, false},
    {"validation_accuracy", last<&EpochRecord::validation_accuracy>, false},
}};

const Measure* find_measure(std::string_view name) {
  const auto* const found = std::find_if(kMeasures.begin(), kMeasures.end(),
                                         [&](const Measure& measure) { return measure.name == name; });
  return found == kMeasures.end() ? nullptr : found;
}

}  // namespace

std::optional<double> run_metric(const RunRecord& run, std::string_view name) {
  if (const Measure* measure = find_measure(name)) return measure->of(run);
  const auto found = run.metrics.find(std::string(name));
  return found == run.metrics.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> metric_names(const std::vector<const RunRecord*>& runs) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const Measure& measure : kMeasures) {
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const RunRecord* run) { return measure.of(*run).has_value(); }))
      add(measure.name);
  }
  for (const RunRecord* run : runs) {
    for (const auto& [name, value] : run->metrics) add(name);
  }
  return names;
}

bool is_time(std::string_view name) {
  const Measure* measure = find_measure(name);
  return measure != nullptr && measure->is_time;
}

}  // namespace sweep
