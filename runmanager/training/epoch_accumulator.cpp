#include "runmanager/training/epoch_accumulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace sweep {

void EpochAccumulator::add(const Totals& totals) {
  training_ += totals;
  has_classes_ = has_classes_ && totals.numbers == 0;
}

void EpochAccumulator::add_loss(double mean_loss, const Batch& batch) {
  training_.loss += mean_loss * static_cast<double>(batch.size());
  training_.samples += static_cast<std::int64_t>(batch.size());
  has_classes_ = has_classes_ && !are_numbers(batch.targets);
}

void EpochAccumulator::add_correct(std::span<const float> outputs, const Batch& batch) {
  if (batch.size() == 0) return;
  if (outputs.empty() || outputs.size() % batch.size() != 0) {
    throw ShapeError(
        fmt::format("track_num_correct: {} outputs for a batch of {}", outputs.size(), batch.size()));
  }
  if (are_numbers(batch.targets))
    throw ShapeError("track_num_correct: the targets of the batch are no classes");
  const std::span<const std::int32_t> labels = batch.labels();
  const std::size_t classes = outputs.size() / batch.size();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto row = outputs.subspan(i * classes, classes);
    const auto largest = std::max_element(row.begin(), row.end()) - row.begin();
    training_.correct += largest == labels[batch.rows[i]];
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
  EpochRecord epoch;
  epoch.epoch = number;
  const auto samples = static_cast<double>(training_.samples);
  epoch.loss = training_.samples > 0 ? training_.loss / samples : std::nan("");
  if (has_classes_) {
    epoch.accuracy = training_.samples > 0 ? static_cast<double>(training_.correct) / samples : std::nan("");
    epoch.number_correct = training_.correct;
  }
  epoch.measures = measures_of(training_, training_variation);
  if (validation_ && validation_->samples > 0) {
    const auto count = static_cast<double>(validation_->samples);
    epoch.validation_loss = validation_->loss / count;
    if (validation_->numbers == 0) {
      epoch.validation_accuracy = static_cast<double>(validation_->correct) / count;
      epoch.validation_number_correct = validation_->correct;
    }
    epoch.validation_measures = measures_of(*validation_, validation_variation_);
  }
  epoch.epoch_seconds = seconds_.value_or(0);
  epoch.images_per_second = epoch.epoch_seconds > 0 ? samples / epoch.epoch_seconds : 0;
  epoch.data_wait_seconds = wait_seconds_;
  epoch.device_seconds = device_seconds_;
  epoch.communication_seconds = communication_seconds_;
  return epoch;
}

}  // namespace sweep
