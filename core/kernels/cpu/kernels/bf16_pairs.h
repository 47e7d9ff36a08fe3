// Rounds floats to bf16, to nearest even, and joins two of them: see bf16_kernels.h. NaN stays NaN, and what
// is beyond the largest bf16 (3.39e38) becomes infinite.
#pragma once

#include <cstddef>

namespace sweep::cpu {

/// Pairs that `channels` channels make.
constexpr std::size_t pair_count(std::size_t channels) { return (channels + 1) / 2; }

/// pairs[i] = (even[i], odd[i]) for i < count; zeros for odd where that is nullptr.
void pack_pairs(const float* even, const float* odd, std::size_t count, float* pairs);

/// The pairs of `channels` channels, each `count` floats long and `stride` floats after the one before it;
/// `pairs` has the same stride.
void pack_channel_pairs(const float* values, std::size_t channels, std::size_t count, std::size_t stride,
                        float* pairs);

/// Neighbours in two rows of kLanes floats: pairs[i] = (first[2i], first[2i + 1]) for the lower half of
/// kLanes pairs, and those of `second`, or zeros for nullptr, in the upper.
void pack_adjacent_pairs(const float* first, const float* second, float* pairs);

}  // namespace sweep::cpu
