// Loads a block of samples: converts bytes to floats and transposes samples to lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// out [pixels][16] = byte / 255, correctly rounded. images: 16 pointers to `pixels` bytes each,
/// channel by channel. Thread-safe.
extern const Kernel<void(const std::uint8_t* const (&images)[kLanes], std::size_t pixels, float* out)>
    load_pixels;

/// out [values][16] = the values of 16 samples. samples: 16 pointers to `values` floats each. Thread-safe.
extern const Kernel<void(const float* const (&samples)[kLanes], std::size_t values, float* out)> load_floats;

/// (x − mean[c]) / std[c] in place; values [channels][plane][16], mean and std one per channel. Thread-safe.
extern const Kernel<void(std::span<const float> mean, std::span<const float> std, std::size_t plane,
                         float* values)>
    normalize_pixels;

}  // namespace sweep::cpu
