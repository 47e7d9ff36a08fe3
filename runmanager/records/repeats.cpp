#include "runmanager/records/repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "runmanager/config/params.h"

namespace sweep {

std::vector<RepeatGroup> repeat_groups(std::span<const Params> runs) {
  std::vector<RepeatGroup> groups;
  std::map<std::string, std::size_t> known;  // the text of a combination: its place
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Params params = runs[i];
    if (std::erase_if(params, [](const auto& param) { return param.first == kRepeatKey; }) == 0) continue;
    std::string text;  // Names and values cannot hold a NUL.
    for (const auto& [key, value] : params) text += key + '\0' + param_text(value) + '\0';
    const auto [at, is_new] = known.emplace(std::move(text), groups.size());
    if (is_new) groups.push_back({std::move(params), {}, {}});
    groups[at->second].runs.push_back(i);
  }
  std::vector<Params> named;
  named.reserve(groups.size());
  for (const RepeatGroup& group : groups) named.push_back(group.params);
  std::vector<std::string> names = run_names(named);
  for (std::size_t i = 0; i < names.size(); ++i) groups[i].name = std::move(names[i]);
  return groups;
}

std::optional<CompletedRepeats> completed_repeats(const RepeatGroup& group, std::span<const RunRecord> runs) {
  CompletedRepeats repeats{.params = group.params, .name = group.name, .runs = {}};
  for (const std::size_t i : group.runs) {
    if (runs[i].status == RunStatus::kCompleted && !runs[i].epochs.empty()) repeats.runs.push_back(&runs[i]);
  }
  return repeats.runs.size() < 2 ? std::nullopt : std::optional(std::move(repeats));
}

std::vector<CompletedRepeats> completed_repeats(std::span<const RunRecord> runs) {
  std::vector<Params> params;
  params.reserve(runs.size());
  for (const RunRecord& run : runs) params.push_back(run.params);
  std::vector<CompletedRepeats> found;
  for (const RepeatGroup& group : repeat_groups(params)) {
    if (auto repeats = completed_repeats(group, runs)) found.push_back(*std::move(repeats));
  }
  return found;
}

Spread spread_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1))};
}

std::vector<EpochSpreads> spreads_of(const CompletedRepeats& repeats) {
  std::vector<EpochSpreads> epochs;
  const auto epochs_of = [](const RunRecord* run) { return run->epochs.size(); };
  const std::size_t last = epochs_of(std::ranges::min(repeats.runs, {}, epochs_of));
  const bool has_untrained =
      std::ranges::all_of(repeats.runs, [](const RunRecord* run) { return run->untrained.has_value(); });
  for (std::size_t number = has_untrained ? 0 : 1; number <= last; ++number) {
    std::map<const Metric*, std::vector<double>> values;  // in the order of the runs
    for (const RunRecord* run : repeats.runs) {
      const EpochRecord& epoch = number == 0 ? *run->untrained : run->epochs[number - 1];
      for (const auto& [metric, value] : epoch.values) values[metric].push_back(value);
      if (number < last) continue;
      for (const auto& [name, value] : run->metrics) {
        const Metric* const metric = find_metric(name);
        const bool is_new = metric != nullptr && metric->part == MetricPart::kTest && !epoch[*metric];
        if (is_new) values[metric].push_back(value);
      }
    }
    EpochSpreads& spreads = epochs.emplace_back(EpochSpreads{.epoch = number});
    for (const auto& [metric, of_runs] : values)
      if (of_runs.size() == repeats.runs.size()) spreads.values.emplace(metric, spread_of(of_runs));
  }
  return epochs;
}

}  // namespace sweep
