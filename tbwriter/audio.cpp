#include <algorithm>
#include <cmath>
#include <string>

#include "tbwriter/encoding.h"
#include "tbwriter/error.h"
#include "tbwriter/message.h"

namespace sweep::tbwriter {
namespace {

constexpr std::uint16_t kPcm = 1;
constexpr std::size_t kHeader = 44;

}  // namespace

std::string encode_audio(std::span<const float> samples, std::int64_t sample_rate, std::int64_t channels) {
  if (sample_rate < 1 || sample_rate > 10'000'000 || channels < 1 || channels > 65535) {
    throw UsageError(
        "a sound has " + std::to_string(channels) + " channels at " + std::to_string(sample_rate) +
        " samples per second, but needs 1 to 65535 channels and 1 to 10000000 samples per second");
  }
  if (samples.size() % static_cast<std::size_t>(channels) != 0) {
    throw UsageError("a sound of " + std::to_string(channels) + " channels has " +
                     std::to_string(samples.size()) + " samples, which are no whole frames");
  }
  if (samples.size() > 0x7FFFFF00u / 2) throw UsageError("a sound has more samples than a WAV file can hold");
  const auto data_size = static_cast<std::uint32_t>(samples.size() * 2);
  const auto frame_size = static_cast<std::uint32_t>(channels * 2);
  const auto rate = static_cast<std::uint32_t>(sample_rate);
  std::string wav;
  wav.reserve(kHeader + data_size);
  wav += "RIFF";
  wire::raw<std::uint32_t>(wav, static_cast<std::uint32_t>(kHeader) - 8 + data_size);
  wav += "WAVEfmt ";
  wire::raw<std::uint32_t>(wav, 16);
  wire::raw<std::uint16_t>(wav, kPcm);
  wire::raw<std::uint16_t>(wav, static_cast<std::uint16_t>(channels));
  wire::raw<std::uint32_t>(wav, rate);
  wire::raw<std::uint32_t>(wav, static_cast<std::uint32_t>(
                                    std::min<std::uint64_t>(std::uint64_t{rate} * frame_size, 0xFFFFFFFFu)));
  wire::raw<std::uint16_t>(wav, static_cast<std::uint16_t>(frame_size));
  wire::raw<std::uint16_t>(wav, 16);
  wav += "data";
  wire::raw<std::uint32_t>(wav, data_size);
  for (const float sample : samples) {
    const float clamped = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
    wire::raw<std::int16_t>(wav, static_cast<std::int16_t>(std::lround(clamped * 32767.0f)));
  }
  return Message()
      .reserve(64 + wav.size())
      .always(1, static_cast<float>(sample_rate))
      .integer(2, channels)
      .integer(3, static_cast<std::int64_t>(samples.size()) / channels)
      .bytes(4, wav)
      .bytes(5, "audio/wav")
      .take();
}

}  // namespace sweep::tbwriter
