#include "core/base/random.h"

namespace sweep {

RandomStream::RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t stream, std::uint32_t substream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, static_cast<std::uint32_t>(use), stream, substream} {}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

// Lemire, "Fast Random Integer Generation in an Interval" (2019): the upper half of random · bound is the
// result. It is biased unless the 2^32 mod bound smallest lower halves are rejected; the modulo is needed
// only if the lower half is below `bound`.
std::uint32_t RandomStream::below(std::uint32_t bound) {
  std::uint64_t product = static_cast<std::uint64_t>(next_u32()) * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t threshold = (0u - bound) % bound;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = static_cast<std::uint64_t>(next_u32()) * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

float RandomStream::uniform(float low, float high) {
  const float unit = static_cast<float>(next_u32() >> 8) * 0x1.0p-24f;
  return low + (high - low) * unit;
}

}  // namespace sweep
