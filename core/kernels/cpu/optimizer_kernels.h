// Gradient reduction and parameter updates, elementwise over ranges of the parameter array.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/optimizer.h"

namespace sweep::cpu {

/// sum[i] = partial[0][i] + partial[1][i] + …, always in that order; partial s starts at partials + s ·
/// stride. All ranges are whole cache lines. Thread-safe for disjoint ranges, as the functions below.
void reduce_gradients(const float* partials, std::size_t count, std::size_t stride, std::size_t floats,
                      float* sum);

/// Σ of the squares of `floats` values, in double and always in the same order.
double sum_of_squares(const float* values, std::size_t floats);

/// values[i] *= factor.
void scale_values(float factor, std::size_t floats, float* values);

/// One step of torch.optim.SGD on `floats` values. `momentum` is the buffer, unused if options.momentum is 0.
void sgd_step(const SgdOptions& options, double learning_rate, bool first_step, std::size_t floats,
              const float* gradient, float* momentum, float* parameters);

/// Step number `step` (from 1) of torch.optim.Adam or AdamW.
void adam_step(const AdamOptions& options, double learning_rate, std::int64_t step, std::size_t floats,
               const float* gradient, float* mean, float* square, float* parameters);

/// One step of torch.optim.RMSprop. `mean` is unused unless options.centered, `momentum` unless
/// options.momentum is not 0.
void rmsprop_step(const RmspropOptions& options, double learning_rate, std::size_t floats,
                  const float* gradient, float* square, float* mean, float* momentum, float* parameters);

}  // namespace sweep::cpu
