// The first step of every pass: a batch's bytes become floats.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// x = (byte / 255 − mean[c]) / std[c]; both nullptr: x = byte / 255. Arrays of the device, [channels].
struct Normalisation {
  const float *mean = nullptr, *std = nullptr;
};

/// out [images][channels][plane]: the pixels of the rows. `input` and `rows` [images] are the device's.
void load_pixels(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                 int plane, const Normalisation& normalisation, float* out);

}  // namespace sweep::cuda
