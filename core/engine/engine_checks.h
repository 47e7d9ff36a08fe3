// What all engines share: checks, so that messages are the same on all devices, and the scale of a batch's
// losses. Not part of the installed interface.
#pragma once

#include <cstddef>
#include <span>

#include "core/engine/engine.h"

namespace sweep {

/// Throws ShapeError if `batch` is larger than `batch_size`, its samples are not of the network's input size,
/// an index or a class is out of range, or its targets are numbers that are not of its output size or that
/// `loss` does not take. ConfigError if it has other changes than those that the engine makes.
void check_batch(const Batch& batch, const Network& network, std::size_t batch_size, const LossOptions& loss,
                 std::span<const AugmentStep> augment = {});

/// Throws ConfigError if an option is out of its range, unless there is a class weight for every output, and
/// a mean and a deviation for every channel or feature, or none.
void check_options(const EngineOptions& options, const Network& network);

/// Throws ShapeError unless `outputs` has the size of the outputs of `batch`, or may be empty and is.
void check_outputs(std::span<const float> outputs, const Batch& batch, const Network& network,
                   bool may_be_empty);

/// Returns how many values an array has.
inline std::size_t array_size(const EngineArray& which, const Network& network) {
  return which.kind == EngineArray::kBuffers ? network.buffer_count() : network.parameter_count();
}

/// Throws ShapeError if set_array() is given another number of values.
void check_array(const EngineArray& which, std::span<const float> values, const Network& network);

/// Returns `optimizer` with the momentum of a step, if that has one. Throws ConfigError if `optimizer` then
/// has none to change, see has_momentum().
OptimizerOptions optimizer_of_step(const OptimizerOptions& optimizer, const StepValues& values);

/// What makes the losses of a batch's samples their mean.
struct MeanScale {
  float gradient;  // of a sample's loss, in that of the mean over the batch
  double loss;     // of a sample's loss, where sums count each batch's mean once per sample
};

/// Returns the scale for the whole `batch`; a device may have only some of its samples. With class weights,
/// PyTorch's mean divides by the sum of the labels' weights. Where that is 0, its loss is infinite or NaN:
/// here loss and gradient are 0 in training, and an evaluation, whose caller divides by the weights of all
/// batches, takes the losses as they are; they are 0 without label smoothing.
MeanScale mean_scale(const Batch& batch, const LossOptions& loss, bool training);

}  // namespace sweep
