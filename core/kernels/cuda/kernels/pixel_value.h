// Converts one pixel, for the kernels that read bytes.
#pragma once

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// Element `element` of the sample that starts at `sample`, normalised. plane: pixels of a channel.
inline __device__ float pixel_value(const std::uint8_t* sample, int element, int plane,
                                    const Normalisation& n) {
  const float x = static_cast<float>(sample[element]) / 255.0f;
  return n.mean == nullptr ? x : (x - n.mean[element / plane]) / n.std[element / plane];
}

}  // namespace sweep::cuda
