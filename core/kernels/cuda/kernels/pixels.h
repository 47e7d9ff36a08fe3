// Loads the samples of a batch as floats. Networks whose first op reads the batch itself do without.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// x = (v − mean[c]) / std[c], where v is byte / 255 or a float; both nullptr: x = v. Device arrays
/// [channels].
struct Normalisation {
  const float *mean = nullptr, *std = nullptr;
};

/// out [images][channels][plane] = samples rows[0 … images − 1] of `input`. Device pointers.
void load_samples(Stream& stream, const StepInput* input, const std::uint32_t* rows, int images, int channels,
                  int plane, const Normalisation& normalisation, float* out);

}  // namespace sweep::cuda
