// Gradient reduction and parameter updates, elementwise over ranges of the parameter array. `past_caches`:
// parameters are written to memory at once, because other cores have read them and will again; see
// GradientSum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/spec/optimizer.h"

namespace sweep::cpu {

/// Instead of an array's number in the order of add_arrays(): add.
inline constexpr std::int16_t kAddArrays = -1;

/// Σ of arrays in a given order: `order` are numbers of arrays to put on a stack, or kAddArrays, which
/// replaces the two uppermost by their sum; at the end one is left, at no time more than 16. Array k starts
/// at arrays + k · stride. `past_caches`: the sum is for other cores to read, see GradientSum. All ranges are
/// whole cache lines. Thread-safe for disjoint ranges, as the functions below.
void add_arrays(std::span<const std::int16_t> order, const float* arrays, std::size_t stride,
                std::size_t floats, bool past_caches, float* sum);

/// Σ of the squares of `floats` values, in double and always in the same order.
double sum_of_squares(const float* values, std::size_t floats);

/// values[i] *= factor.
void scale_values(float factor, std::size_t floats, float* values);

/// One step of torch.optim.SGD on `floats` values. `momentum` is the buffer, unused if options.momentum is 0.
void sgd_step(const SgdOptions& options, double learning_rate, bool first_step, std::size_t floats,
              const float* gradient, float* momentum, bool past_caches, float* parameters);

/// Step number `step` (from 1) of torch.optim.Adam or AdamW.
void adam_step(const AdamOptions& options, double learning_rate, std::int64_t step, std::size_t floats,
               const float* gradient, float* mean, float* square, bool past_caches, float* parameters);

/// One step of torch.optim.RMSprop. `mean` is unused unless options.centered, `momentum` unless
/// options.momentum is not 0.
void rmsprop_step(const RmspropOptions& options, double learning_rate, std::size_t floats,
                  const float* gradient, float* square, float* mean, float* momentum, bool past_caches,
                  float* parameters);

}  // namespace sweep::cpu
