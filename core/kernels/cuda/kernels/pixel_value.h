// Reads one value of a sample, for the kernels that read the batch itself.
#pragma once

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// A sample of the batch: bytes or floats.
struct BatchSample {
  const std::uint8_t* bytes = nullptr;
  const float* floats = nullptr;  // nullptr: bytes

  BatchSample() = default;
  /// Number `row` of the samples of `values` values each.
  __device__ BatchSample(const StepInput& input, std::uint32_t row, int values) {
    const std::size_t first = static_cast<std::size_t>(row) * static_cast<std::size_t>(values);
    floats = input.floats == nullptr ? nullptr : input.floats + first;
    bytes = input.floats == nullptr ? input.pixels + first : nullptr;
  }

  /// Element `element`, normalised. plane: values of a channel.
  __device__ float value(int element, int plane, const Normalisation& n) const {
    const float x = floats != nullptr ? floats[element] : static_cast<float>(bytes[element]) / 255.0f;
    return n.mean == nullptr ? x : (x - n.mean[element / plane]) / n.std[element / plane];
  }
};

}  // namespace sweep::cuda
