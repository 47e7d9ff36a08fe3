// Gradient reduction and parameter updates, elementwise over ranges of the parameter array. `past_caches`:
// results are written with non-temporal stores, because other cores have read them and will again; see
// GradientSum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/cpu/simd/kernel.h"
#include "core/network/optimizer.h"

namespace sweep::cpu {

/// Instead of an array's number in the order of add_arrays(): add.
inline constexpr std::int16_t kAddArrays = -1;

/// Σ of arrays in a given order: `order` are numbers of arrays to put on a stack, or kAddArrays, which
/// replaces the two uppermost by their sum; at the end one is left, at no time more than 16. Array k starts
/// at arrays + k · stride. `past_caches`: the sum is for other cores to read, see GradientSum. All ranges are
/// whole cache lines. Thread-safe for disjoint ranges, as the functions below.
extern const Kernel<void(std::span<const std::int16_t> order, const float* arrays, std::size_t stride,
                         std::size_t floats, bool past_caches, float* sum)>
    add_arrays;

/// One optimizer step over a range of parameters. All ranges are whole cache lines.
struct OptimizerStep {
  double learning_rate = 0;
  std::int64_t number = 1;  // of the step, from 1
  std::size_t floats = 0;
  const float* gradient = nullptr;
  std::array<float*, kMaxOptimizerStates> state = {};  // in the order of state_names()
  bool past_caches = false;                            // for `parameters`
  float* parameters = nullptr;
};

/// Takes the step with the formula of core/network/optimizer.h: changes `parameters` and `state`.
extern const Kernel<void(const OptimizerOptions& options, const OptimizerStep& step)> optimizer_step;

}  // namespace sweep::cpu
