// Reads one value of a sample, for the kernels that read the batch itself.
#pragma once

#include <bit>
#include <cmath>

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

  /// Element `element` as it is stored: a byte, or the bits of a float.
  __device__ std::uint32_t bits(int element) const {
    return floats != nullptr ? std::bit_cast<std::uint32_t>(floats[element]) : bytes[element];
  }
  /// A value with these bits() of channel `channel`, normalised.
  static __device__ float value_of(std::uint32_t bits, bool are_floats, int channel, const Normalisation& n) {
    const float x = are_floats ? std::bit_cast<float>(bits) : byte_value(static_cast<float>(bits));
    return n.mean == nullptr ? x : (x - n.mean[channel]) / n.std[channel];
  }
  /// Element `element`, normalised. plane: values of a channel.
  __device__ float value(int element, int plane, const Normalisation& n) const {
    return value_of(bits(element), floats != nullptr, n.mean == nullptr ? 0 : element / plane, n);
  }

 private:
  // byte / 255, correctly rounded for every byte (PixelValue.OfEveryByteIsTheQuotient), in three
  // instructions: a division is ten and a branch.
  static __device__ float byte_value(float byte) {
    constexpr float kInverse = 1.0f / 255.0f;
    const float quotient = byte * kInverse;
    return std::fma(std::fma(-quotient, 255.0f, byte), kInverse, quotient);
  }
};

}  // namespace sweep::cuda
