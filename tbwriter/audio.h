// Encodes audio as 16-bit PCM WAV. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sweep::tbwriter {

/// Returns a WAV file. `samples` are [frames, channels] in [-1, 1]; other values are clamped, NaN becomes 0.
/// `sample_rate` is in frames per second, 1 to 10,000,000; `channels` are 1 to 65535. Throws UsageError for
/// other values, for an incomplete frame, and for more samples than a WAV file can hold.
std::string encode_wav(std::span<const float> samples, std::int64_t sample_rate, std::int64_t channels);

}  // namespace sweep::tbwriter
