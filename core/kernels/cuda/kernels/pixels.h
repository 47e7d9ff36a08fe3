// Converts the bytes of a batch to floats. Networks whose first op reads bytes itself do without.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// x = (byte / 255 − mean[c]) / std[c]; both nullptr: x = byte / 255. Device arrays [channels].
struct Normalisation {
  const float *mean = nullptr, *std = nullptr;
};

/// out [images][channels][plane] = the pixels of samples rows[0 … images − 1] of input->pixels. Device
/// pointers.
void load_pixels(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                 int plane, const Normalisation& normalisation, float* out);

}  // namespace sweep::cuda
