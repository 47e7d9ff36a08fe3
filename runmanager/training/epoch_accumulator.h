// Accumulates the measurements of one epoch until its record is complete. Not part of the installed
// interface.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Not thread-safe.
class EpochAccumulator {
 public:
  /// `begin`: the start of the epoch, in seconds of the clock that end_training() also uses.
  explicit EpochAccumulator(double begin) : begin_(begin) {}

  void add(const Totals& totals);
  /// `mean_loss`: over the batch's samples.
  void add_loss(double mean_loss, const Batch& batch);
  /// The same of `samples` that are in no Batch. There is an accuracy only if add_correct() also counts.
  void add_loss(double mean_loss, std::int64_t samples);
  /// `outputs`: [batch.size(), classes] row-major. The first of equal largest outputs is the prediction.
  /// Throws ShapeError if there are no whole rows.
  void add_correct(std::span<const float> outputs, const Batch& batch);
  /// `count` samples were predicted rightly.
  void add_correct(std::int64_t count);
  /// A metric of the loop's own.
  void set_metric(std::string_view name, double value) {
    own_metrics_.insert_or_assign(std::string(name), value);
  }

  /// Takes `seconds` before the end of training out of its time.
  void exclude(double seconds) { begin_ += seconds; }
  /// Ends the time that counts as training; calls after the first do nothing. `wait_seconds`: the part of
  /// that time in which training waited for data.
  void end_training(double now, double wait_seconds);
  void set_device_seconds(double seconds) { device_seconds_ = seconds; }
  void set_communication_seconds(double seconds) { communication_seconds_ = seconds; }
  /// `variation`: target_variation() of the validation samples.
  void set_validation(const Totals& totals, double variation) {
    validation_ = totals;
    validation_variation_ = variation;
  }
  /// The values of all parameters, for histograms. `gradients` may be empty. Replaces counts.
  void set_parameters(std::span<const float> values, std::span<const float> gradients);
  /// The same, counted between parameter_limits(). Replaces values and gradients.
  void set_parameters(ParameterCounts counts);

  /// Empty if none were set, or counts were.
  const std::vector<float>& values() const { return values_; }
  const std::vector<float>& gradients() const { return gradients_; }
  const std::optional<ParameterCounts>& counts() const { return counts_; }

  /// The record of epoch `number`, from 1, after end_training(). Without samples, the training loss and
  /// accuracy are NaN and those of validation are missing. `training_variation`: target_variation() of the
  /// training samples.
  EpochRecord record(int number, double training_variation) const;

 private:
  double begin_, wait_seconds_ = 0;
  std::optional<double> seconds_, device_seconds_, communication_seconds_;
  Totals training_;
  bool has_classes_ = true;  // no target so far was a number
  bool is_own_loss_ = false, counts_correct_ = false;
  std::map<std::string, double> own_metrics_;
  std::optional<Totals> validation_;
  double validation_variation_ = 0;
  std::vector<float> values_, gradients_;
  std::optional<ParameterCounts> counts_;
};

}  // namespace sweep
