// Rounds floats to bf16 and packs two of them into 32 bits, as bf16_kernels.h needs them. Rounds to nearest,
// ties to even. NaN stays NaN, and values beyond the largest bf16 (3.39e38) become infinite. Thread-safe:
// pure functions.
#pragma once

#include <cstddef>

namespace sweep::cpu {

/// Pairs of `channels` channels; an odd last channel is paired with zero.
constexpr std::size_t pair_count(std::size_t channels) { return (channels + 1) / 2; }

/// pairs[i] = (even[i], odd[i]) for i < count, with the even value in the lower
/// half. If `odd` is nullptr, zeros.
void pack_pairs(const float* even, const float* odd, std::size_t count, float* pairs);

/// Packs neighbouring channels of `values`, [channels] of `count` floats each, `stride` floats apart. `pairs`
/// has [pair_count(channels)] channels with the same stride.
void pack_channel_pairs(const float* values, std::size_t channels, std::size_t count, std::size_t stride,
                        float* pairs);

/// Packs neighbouring values of two rows of kLanes floats: pairs[i] = (first[2i], first[2i + 1]) for i <
/// kLanes / 2, and the pairs of `second` after those; if that is nullptr, zeros.
void pack_adjacent_pairs(const float* first, const float* second, float* pairs);

}  // namespace sweep::cpu
