#include "runmanager/training/epoch_accumulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/measured_metrics.h"

namespace sweep {

void EpochAccumulator::add(const Totals& totals) {
  training_ += totals;
  has_classes_ = has_classes_ && totals.numbers == 0;
}

void EpochAccumulator::add_loss(double mean_loss, const Batch& batch) {
  training_.loss += mean_loss * static_cast<double>(batch.size());
  training_.samples += static_cast<std::int64_t>(batch.size());
  has_classes_ = has_classes_ && !is_regression(batch.targets);
}

void EpochAccumulator::add_loss(double mean_loss, std::int64_t samples) {
  training_.loss += mean_loss * static_cast<double>(samples);
  training_.samples += samples;
  is_own_loss_ = true;
}

void EpochAccumulator::add_correct(std::int64_t count) {
  training_.correct += count;
  counts_correct_ = true;
}

void EpochAccumulator::add_correct(std::span<const float> outputs, const Batch& batch) {
  if (batch.size() == 0) return;
  if (outputs.empty() || outputs.size() % batch.size() != 0) {
    throw ShapeError(
        fmt::format("track_num_correct: {} outputs for a batch of {}", outputs.size(), batch.size()));
  }
  if (is_regression(batch.targets))
    throw ShapeError("track_num_correct: the targets of the batch are no classes");
  const std::span<const std::int32_t> labels = batch.labels();
  const std::size_t classes = outputs.size() / batch.size();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto row = outputs.subspan(i * classes, classes);
    const auto largest = std::max_element(row.begin(), row.end()) - row.begin();
    training_.correct += largest == labels[batch.indices[i]];
  }
}

void EpochAccumulator::end_training(double now, double wait_seconds) {
  if (seconds_) return;
  seconds_ = now - begin_;
  wait_seconds_ = wait_seconds;
}

void EpochAccumulator::set_parameters(std::span<const float> values, std::span<const float> gradients) {
  values_.assign(values.begin(), values.end());
  gradients_.assign(gradients.begin(), gradients.end());
  counts_.reset();
}

void EpochAccumulator::set_parameters(ParameterCounts counts) {
  values_.clear();
  gradients_.clear();
  counts_ = std::move(counts);
}

EpochRecord EpochAccumulator::record(int number, double training_variation) const {
  EpochRecord epoch(number);
  epoch.values = measured_metrics(training_, training_variation, MetricPart::kTraining);
  if (!has_classes_ || (is_own_loss_ && !counts_correct_)) {
    for (const char* key : {"accuracy", "number_correct"}) epoch.set(key, std::nullopt);
  }
  if (validation_ && validation_->samples > 0) {
    const auto measured = measured_metrics(*validation_, validation_variation_, MetricPart::kValidation);
    epoch.values.insert(epoch.values.end(), measured.begin(), measured.end());
  }
  const double seconds = seconds_.value_or(0);
  epoch.set("epoch_seconds", seconds);
  epoch.set("images_per_second", seconds > 0 ? static_cast<double>(training_.samples) / seconds : 0);
  epoch.set("data_wait_seconds", wait_seconds_);
  epoch.set("device_seconds", device_seconds_);
  epoch.set("communication_seconds", communication_seconds_);
  for (const auto& [name, value] : own_metrics_) epoch.set(name, value);
  return epoch;
}

}  // namespace sweep
