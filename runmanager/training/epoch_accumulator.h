// What is known of an epoch while it goes on. Not part of the installed interface.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

class EpochAccumulator {
 public:
  /// `begin`: seconds of the clock that end_training() gets, too.
  explicit EpochAccumulator(double begin) : begin_(begin) {}

  void add(const Totals& totals);
  /// `mean_loss`: over the batch's samples.
  void add_loss(double mean_loss, const Batch& batch);
  /// `outputs`: [batch][classes]. Throws ShapeError if they are not as many for each sample.
  void add_correct(std::span<const float> outputs, const Batch& batch);

  /// The first call ends the time that counts as training; `wait_seconds` of it were spent waiting for data.
  void end_training(double now, double wait_seconds);
  void set_device_seconds(double seconds) { device_seconds_ = seconds; }
  void set_validation(const Totals& totals) { validation_ = totals; }
  /// Of all parameters, for histograms; `gradients` may be empty.
  void set_parameters(std::span<const float> values, std::span<const float> gradients);

  /// The same, counted between limits that both sides know. Replaces the other, as the other does this.
  void set_parameters(ParameterCounts counts);

  /// Empty if there is nothing, or counts instead.
  const std::vector<float>& values() const { return values_; }
  const std::vector<float>& gradients() const { return gradients_; }

  const std::optional<ParameterCounts>& counts() const { return counts_; }

  /// As epoch `number`, after end_training(). Losses and accuracies of no samples are NaN, or missing.
  EpochRecord record(int number) const;

 private:
  double begin_, wait_seconds_ = 0;
  std::optional<double> seconds_, device_seconds_;
  Totals training_;
  std::optional<Totals> validation_;
  std::vector<float> values_, gradients_;
  std::optional<ParameterCounts> counts_;
};

}  // namespace sweep
