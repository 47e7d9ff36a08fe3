#include "runmanager/tensorboard/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "runmanager/config/run_name.h"
#include "runmanager/records/run_files.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

constexpr const char* kRepeatKey = "repeat";
constexpr std::array<const char*, 3> kStatistics = {"mean", "min", "max"};

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Comparisons with NaN are false, so std::min_element would return it or not depending on its position.
bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}
double min_of(std::span<const double> values) {
  return has_nan(values) ? std::nan("") : *std::min_element(values.begin(), values.end());
}
double max_of(std::span<const double> values) {
  return has_nan(values) ? std::nan("") : *std::max_element(values.begin(), values.end());
}

using Statistic = double (*)(std::span<const double>);

AggregatePoint point_of(std::span<const RunRecord* const> runs, std::size_t epoch, Statistic statistic) {
  const auto over_runs = [&](auto value) -> std::optional<double> {
    std::vector<double> values;
    for (const RunRecord* run : runs) {
      const std::optional<double> one = value(run->epochs[epoch]);
      if (!one) return std::nullopt;
      values.push_back(*one);
    }
    return statistic(values);
  };
  using Value = std::optional<double>;
  AggregatePoint point = {
      .epoch = runs[0]->epochs[epoch].epoch,
      .loss = *over_runs([](const EpochRecord& e) -> Value { return e.loss; }),
      .accuracy = over_runs([](const EpochRecord& e) { return e.accuracy; }),
      .validation_loss = over_runs([](const EpochRecord& e) { return e.validation_loss; }),
      .validation_accuracy = over_runs([](const EpochRecord& e) { return e.validation_accuracy; })};
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    point.measures[i] = over_runs([i](const EpochRecord& e) { return e.measures[i]; });
    point.validation_measures[i] = over_runs([i](const EpochRecord& e) { return e.validation_measures[i]; });
  }
  return point;
}

bool has_ended(RunStatus status) {
  return status == RunStatus::kCompleted || status == RunStatus::kFailed || status == RunStatus::kSkipped;
}

void remove_run(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory)) return;
  prepare_run_directory(directory);
  std::error_code not_empty;  // Other files in the directory keep it.
  std::filesystem::remove(directory, not_empty);
}

void write_run(const std::filesystem::path& directory, std::span<const AggregatePoint> points) {
  prepare_run_directory(directory);
  tbwriter::SummaryWriter writer(directory);
  for (const AggregatePoint& point : points) {
    std::vector<tbwriter::ScalarPoint> scalars = {{"Loss/train", point.loss}};
    if (point.accuracy) scalars.push_back({"Accuracy/train", *point.accuracy});
    if (point.validation_loss) scalars.push_back({"Loss/validation", *point.validation_loss});
    if (point.validation_accuracy) scalars.push_back({"Accuracy/validation", *point.validation_accuracy});
    for (std::size_t i = 0; i < kMeasures.size(); ++i) {
      if (point.measures[i]) scalars.push_back({kMeasures[i].train_tag, *point.measures[i]});
      if (point.validation_measures[i])
        scalars.push_back({kMeasures[i].validation_tag, *point.validation_measures[i]});
    }
    writer.add_scalars(scalars, point.epoch);
  }
  writer.close();
}

}  // namespace

std::optional<Aggregate> aggregate_of(std::span<const RunRecord* const> repeats) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord* run : repeats) {
    if (run->status == RunStatus::kCompleted) runs.push_back(run);
  }
  if (runs.size() < 2) return std::nullopt;
  std::size_t epochs = runs[0]->epochs.size();
  for (const RunRecord* run : runs) epochs = std::min(epochs, run->epochs.size());
  Aggregate aggregate;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    aggregate.mean.push_back(point_of(runs, epoch, mean_of));
    aggregate.min.push_back(point_of(runs, epoch, min_of));
    aggregate.max.push_back(point_of(runs, epoch, max_of));
  }
  return aggregate;
}

AggregateRuns::AggregateRuns(std::filesystem::path directory, std::span<const RunConfig> runs)
    : directory_(std::move(directory)) {
  std::map<std::string, std::size_t> known;  // params without the repeat: combination
  std::vector<Params> named;                 // the params that each directory is named after
  for (const RunConfig& run : runs) named.push_back(run.params);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Params params = runs[i].params;
    if (std::erase_if(params, [](const auto& param) { return param.first == kRepeatKey; }) == 0) continue;
    const auto [at, is_new] = known.emplace(to_json(params).dump(), combinations_.size());
    if (is_new) {
      combinations_.emplace_back();
      for (const char* statistic : kStatistics) {
        named.push_back(params);
        named.back().emplace_back("aggregate", std::string(statistic));
      }
    }
    combinations_[at->second].runs.push_back(i);
  }
  // Named together with the runs, so that all names are unique.
  const std::vector<std::string> names = run_names(named);
  auto next = names.begin() + static_cast<std::ptrdiff_t>(runs.size());
  for (Combination& combination : combinations_) {
    combination.names.assign(next, next + kStatistics.size());
    next += kStatistics.size();
  }
}

void AggregateRuns::update(std::size_t run, std::span<const RunRecord> records) const {
  for (const Combination& combination : combinations_) {
    if (std::find(combination.runs.begin(), combination.runs.end(), run) != combination.runs.end())
      write(combination, records);
  }
}

void AggregateRuns::update_all(std::span<const RunRecord> records) const {
  for (const Combination& combination : combinations_) write(combination, records);
}

std::vector<std::string> AggregateRuns::names() const {
  std::vector<std::string> names;
  for (const Combination& combination : combinations_)
    names.insert(names.end(), combination.names.begin(), combination.names.end());
  return names;
}

void AggregateRuns::write(const Combination& combination, std::span<const RunRecord> records) const {
  std::vector<const RunRecord*> repeats;
  bool all_ended = true;
  for (const std::size_t run : combination.runs) {
    repeats.push_back(&records[run]);
    all_ended = all_ended && has_ended(records[run].status);
  }
  const std::optional<Aggregate> aggregate = all_ended ? aggregate_of(repeats) : std::nullopt;
  for (std::size_t i = 0; i < kStatistics.size(); ++i) {
    const std::filesystem::path directory = directory_ / combination.names[i];
    if (aggregate) {
      write_run(directory, i == 0 ? aggregate->mean : i == 1 ? aggregate->min : aggregate->max);
    } else {
      remove_run(directory);
    }
  }
}

}  // namespace sweep
