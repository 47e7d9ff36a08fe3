// Sounds as TensorBoard stores them: WAV of 16 bits. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sweep::tbwriter {

/// Returns a WAV file. `samples` are [frames, channels] in [-1, 1]; others are clamped, NaN becomes 0.
/// Throws UsageError unless rate and channels are positive, fit into a WAV file and the samples are whole
/// frames.
std::string encode_wav(std::span<const float> samples, std::int64_t sample_rate, std::int64_t channels);

}  // namespace sweep::tbwriter
