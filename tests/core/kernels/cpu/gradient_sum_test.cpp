#include "core/kernels/cpu/gradient_sum.h"

#include <bit>

#include "core/kernels/cpu/thread_pool.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/test.h"

namespace sweep::cpu::gradient_sum_test {

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

// What the devices of a group do, one after another: the gathering is a copy.
std::vector<std::vector<float>> sums_of_devices(std::vector<GradientSum>& sums, const PartialShares& shares,
                                                ThreadPool& pool, std::uint32_t seed) {
  for (std::size_t device = 0; device < sums.size(); ++device) {
    GradientSum& sum = sums[device];
    sum.begin(shares);
    std::vector<std::size_t> parts;
    for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
      const IndexRange own = shares.of(turn, device);
      for (std::size_t part = own.begin; part < own.end; ++part) parts.push_back(part);
    }
    pool.run(parts.size(), [&](std::size_t index, std::size_t) noexcept {
      float* partial = sum.partials() + index * kFloats;
      for (std::size_t i = 0; i < kFloats; ++i) partial[i] = value(parts[index], i, seed);
      sum.finish_partial(index);
    });
    if (sums.size() == 1) continue;
    sum.add_up_share(0, 512);
    sum.add_up_share(512, kFloats - 512);
  }
  std::vector<std::vector<float>> totals;
  for (GradientSum& to : sums) {
    for (std::size_t from = 0; sums.size() > 1 && from < sums.size(); ++from) {
      const SharedArray source = sums[from].share(), target = to.share();
      std::copy(source.data + source.begins[from], source.data + source.begins[from + 1],
                target.data + target.begins[from]);
    }
    AlignedBuffer total(kFloats);
    constexpr std::size_t kHalf = kFloats / 32 * 16;
    to.total(0, kHalf, total.data());
    to.total(kHalf, kFloats - kHalf, total.data() + kHalf);
    totals.emplace_back(total.data(), total.data() + kFloats);
  }
  return totals;
}

void expect_the_tree(std::size_t devices, std::size_t turns, int threads) {
  ThreadPool pool(threads);
  std::vector<GradientSum> sums;
  sums.reserve(devices);
  for (std::size_t rank = 0; rank < devices; ++rank)
    sums.emplace_back(64, kFloats, pool.size(), DevicePlace{rank, devices}, turns);
  std::uint32_t seed = 0;
  // Different numbers of partial sums one after the other, like the batches of an epoch.
  for (const std::size_t parts : {64u, 1u, 2u, 64u, 3u, 7u, 8u, 7u, 16u, 33u, 63u, 8u}) {
    const auto totals = sums_of_devices(sums, PartialShares(parts, turns, devices), pool, ++seed);
    for (std::size_t i = 0; i < kFloats; i += 13) {
      const float expected = tree_sum(0, std::bit_ceil(parts), parts, i, seed);
      for (const std::vector<float>& total : totals)
        ASSERT_EQ(total[i], expected) << devices << " devices, " << turns << " turns, " << threads
                                      << " threads, " << parts << " parts, float " << i;
    }
  }
}

TEST(GradientSum, AddsInTheSameOrderForAnyNumberOfThreadsDevicesAndTurns) {
  test::for_each_simd_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const int threads : {1, 2, 3, 5, 8, 13}) expect_the_tree(1, 1, threads);
    for (const std::size_t devices : {1u, 2u, 3u, 4u, 7u}) {
      for (const std::size_t turns : {1u, 2u, 5u}) {
        for (const int threads : {1, 3}) expect_the_tree(devices, turns, threads);
      }
    }
  });
}

}  // namespace sweep::cpu::gradient_sum_test
