// Counter-based random numbers: the n-th value depends only on the key and n, so every device draws the same
// values with any number of threads.
#pragma once

#include <array>
#include <cstdint>

namespace sweep {

/// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11); the same function
/// as in cuRAND and PyTorch's CUDA generator. Returns four independent uniform 32-bit values. constexpr, so
/// that CUDA kernels can call it as well.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// What a stream of random numbers is for. Part of the counter, so that different uses of one seed draw
/// independent values.
enum class RandomUse : std::uint32_t {
  kInitialisation = 1,
  kShuffle = 2,
  kDropout = 3,
  kSearch = 4,
  kValidationBatch = 5,
  kAugment = 6
};

/// The sequence of values of (seed, use, stream, substream). Copyable; not thread-safe.
class RandomStream {
 public:
  /// `stream` and `substream` select one of the independent sequences of a use, for example by epoch or by
  /// index of the parameter.
  RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t stream = 0, std::uint32_t substream = 0);

  std::uint32_t next_u32();

  /// Uniform in [0, bound), exactly: Lemire's multiplication with rejection. bound >= 1.
  std::uint32_t below(std::uint32_t bound);

  /// Uniform in [low, high) with 24 random bits; rounding in float may return `high` itself.
  float uniform(float low, float high);

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;  // values of block_ that were returned
};

}  // namespace sweep
