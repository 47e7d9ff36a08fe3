#include "runmanager/answers/run_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runmanager/answers/statistics.h"
#include "runmanager/terminal/table.h"

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

// The epoch whose weights are the run's: the best one if it is kept, else the last.
const EpochRecord& result_epoch(const RunRecord& run) {
  const auto best = std::find_if(run.epochs.begin(), run.epochs.end(),
                                 [&](const EpochRecord& epoch) { return epoch.epoch == run.best_epoch; });
  return best == run.epochs.end() ? run.epochs.back() : *best;
}

template <auto Field>
std::optional<double> last(const RunRecord& run) {
  return run.epochs.empty() ? std::nullopt : std::optional<double>(result_epoch(run).*Field);
}

struct RunNumber {
  std::string_view name;
  std::optional<double> (*of)(const RunRecord& run);
  bool is_time;
};

constexpr std::array<RunNumber, 9> kNumbers = {{
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

const RunNumber* find_number(std::string_view name) {
  const auto* const found = std::find_if(kNumbers.begin(), kNumbers.end(),
                                         [&](const RunNumber& number) { return number.name == name; });
  return found == kNumbers.end() ? nullptr : found;
}

// "mae" or "validation_mae" of the last epoch.
std::optional<double> last_measure(const RunRecord& run, std::string_view name) {
  if (run.epochs.empty()) return std::nullopt;
  constexpr std::string_view kValidation = "validation_";
  const bool validation = name.starts_with(kValidation);
  if (validation) name.remove_prefix(kValidation.size());
  const EpochRecord& epoch = result_epoch(run);
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    if (kMeasures[i].key == name) return (validation ? epoch.validation_measures : epoch.measures)[i];
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> run_metric(const RunRecord& run, std::string_view name) {
  if (const RunNumber* number = find_number(name)) return number->of(run);
  if (const auto measured = last_measure(run, name)) return measured;
  return metric_of(run, std::string(name));
}

std::vector<std::string> metric_names(const std::vector<const RunRecord*>& runs) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const RunNumber& number : kNumbers) {
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const RunRecord* run) { return number.of(*run).has_value(); }))
      add(number.name);
  }
  for (const RunRecord* run : runs) {
    for (const Measure& measure : kMeasures) {
      for (const std::string& name : {std::string(measure.key), "validation_" + std::string(measure.key)})
        if (last_measure(*run, name)) add(name);
    }
    for (const auto& [name, value] : run->metrics) add(name);
  }
  return names;
}

std::string default_metric(const std::vector<const RunRecord*>& runs) {
  const std::vector<std::string> names = metric_names(runs);
  for (const char* name : {"validation_accuracy", "validation_rmse", "accuracy", "rmse", "validation_loss"}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  }
  return "loss";
}

bool is_time(std::string_view name) {
  const RunNumber* number = find_number(name);
  return number != nullptr && number->is_time;
}

bool larger_is_better(std::string_view name) {
  return name == "images_per_second" || name.ends_with("accuracy") || name == "number_correct" ||
         name.ends_with("r2");
}

std::string metric_text(const std::optional<double>& value, std::string_view name) {
  if (!value) return "-";
  if (is_time(name)) return human_seconds(*value);
  if (name == "images_per_second") return human_count(*value);
  if (name.ends_with("accuracy")) return fmt::format("{:.2f}%", 100 * *value);
  return fmt::format("{:.4f}", *value);
}

}  // namespace sweep
