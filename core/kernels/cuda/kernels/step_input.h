// What changes from one step to the next. It lies in the device's memory, so that one graph serves every
// step.
#pragma once

#include <cstdint>

namespace sweep::cuda {

/// Factors of an optimizer's formula that can change from step to step: by schedules, and with its number.
struct StepFactors {
  float rate = 0;    // of the update: −lr, corrected for Adam's bias
  float shrink = 1;  // of the weights: AdamW's decay
  float scale = 1;   // of Adam's root of the mean square
  float keep = 0;    // share of the momentum that stays; sgd and rmsprop
  float take = 1;    // share of the gradient that is new in it: sgd's 1 − dampening, Adam's 1 − beta1
  std::uint32_t first = 0;  // whether no step was taken before
};

/// One batch, in the device's memory: sample i is number rows[i] of `pixels` or of `floats`, its target
/// number rows[i] of `labels` or of `numbers`. The other pointer of each pair is nullptr.
struct StepInput {
  const std::uint8_t* pixels = nullptr;
  const float* floats = nullptr;
  const std::int32_t* labels = nullptr;
  const float* numbers = nullptr;  // as many per sample as the network has outputs
  std::uint32_t step = 0;          // optimizer steps taken before: what dropout draws depends on it
  std::uint32_t epoch = 0;         // from 0: what augmentation draws depends on it
  // For the whole batch; a pass may have only a share of it. See MeanScale.
  float gradient_scale = 1;
  double loss_scale = 1;
  StepFactors factors = {};
};

}  // namespace sweep::cuda
