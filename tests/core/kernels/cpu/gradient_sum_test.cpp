#include "core/kernels/cpu/gradient_sum.h"

#include <gtest/gtest.h>

#include <bit>

#include "core/kernels/cpu/thread_pool.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep::cpu {
namespace {

constexpr std::size_t kFloats = 1040;  // several of add_arrays()'s pieces, the last one short

float value(std::size_t part, std::size_t i, std::uint32_t seed) {
  auto bits = static_cast<std::uint32_t>(part * 7919 + i) * 2654435761u + seed * 40503u;
  bits = (bits ^ bits >> 15) * 2246822519u;
  return static_cast<float>(bits >> 8) / 8388608.0f - 1.0f;
}

// Reference: the same binary tree, as a recursion.
float tree_sum(std::size_t first, std::size_t size, std::size_t parts, std::size_t i, std::uint32_t seed) {
  if (size == 1) return value(first, i, seed);
  const float left = tree_sum(first, size / 2, parts, i, seed);
  if (first + size / 2 >= parts) return left;
  return left + tree_sum(first + size / 2, size / 2, parts, i, seed);
}

std::vector<float> sum_with(GradientSum& sum, ThreadPool& pool, std::size_t parts, std::uint32_t seed) {
  sum.begin(parts);
  pool.run(parts, [&](std::size_t part, std::size_t) noexcept {
    float* partial = sum.partials() + part * kFloats;
    for (std::size_t i = 0; i < kFloats; ++i) partial[i] = value(part, i, seed);
    sum.finish_partial(part);
  });
  AlignedBuffer total(kFloats);
  constexpr std::size_t kHalf = kFloats / 32 * 16;
  sum.total(0, kHalf, total.data());
  sum.total(kHalf, kFloats - kHalf, total.data() + kHalf);
  return {total.data(), total.data() + kFloats};
}

TEST(GradientSum, AddsInTheSameOrderForAnyNumberOfThreads) {
  test::for_each_simd_target([](const std::string& target) {
    for (const int threads : {1, 2, 3, 5, 8, 13}) {
      ThreadPool pool(threads);
      GradientSum sum(64, kFloats, pool.size());
      std::uint32_t seed = 0;
      // Different numbers of partial sums one after the other, like the batches of an epoch.
      for (const std::size_t parts : {64u, 1u, 2u, 64u, 3u, 7u, 8u, 7u, 16u, 33u, 63u, 8u}) {
        const std::vector<float> total = sum_with(sum, pool, parts, ++seed);
        for (std::size_t i = 0; i < kFloats; i += 13) {
          ASSERT_EQ(total[i], tree_sum(0, std::bit_ceil(parts), parts, i, seed))
              << target << ", " << threads << " threads, " << parts << " parts, float " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace sweep::cpu
