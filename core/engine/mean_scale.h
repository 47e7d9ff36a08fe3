// What makes the losses of a batch's samples their mean. Not part of the installed interface.
#pragma once

#include "core/data/data_loader.h"
#include "core/network/loss.h"

namespace sweep {

struct MeanScale {
  float gradient;  // of a sample's loss, in that of the mean over the batch
  double loss;     // of a sample's loss, where sums count each batch's mean once per sample
};

/// Returns the scale for the whole `batch`; a device may have only some of its samples. With class weights,
/// PyTorch's mean divides by the sum of the labels' weights; where that is 0, loss and gradient are 0
/// (PyTorch's are NaN).
MeanScale mean_scale(const Batch& batch, const LossOptions& loss);

}  // namespace sweep
