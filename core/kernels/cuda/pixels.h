// The first step of every pass: a batch's bytes become floats.
#pragma once

#include "core/kernels/cuda/runtime.h"
#include "core/kernels/cuda/step_input.h"

namespace sweep::cuda {

/// out [images][channels][plane] = (byte / 255 − mean[c]) / std[c] of the rows; without mean, byte / 255.
/// mean and std [channels], or both nullptr. `input` and `rows` [images] are the device's.
void load_pixels(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                 int plane, const float* mean, const float* std, float* out);

}  // namespace sweep::cuda
