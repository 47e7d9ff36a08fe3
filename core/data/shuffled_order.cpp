#include "core/data/shuffled_order.h"

#include <numeric>
#include <utility>

#include "core/base/random.h"

namespace sweep {

std::vector<std::uint32_t> shuffled_order(std::size_t count, std::uint64_t seed, std::uint32_t repeat,
                                          std::uint32_t epoch) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order, seed, repeat, epoch, std::atomic<bool>(false));
  return order;
}

void shuffle(std::span<std::uint32_t> values, std::uint64_t seed, std::uint32_t repeat, std::uint32_t epoch,
             const std::atomic<bool>& abandoned) {
  constexpr std::size_t kSwapsPerLook = 1 << 14;
  RandomStream random(seed, RandomUse::kShuffle, epoch, repeat);
  for (std::size_t i = values.size(); i > 1; --i) {  // Fisher-Yates
    if (i % kSwapsPerLook == 0 && abandoned) return;
    std::swap(values[i - 1], values[random.below(static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace sweep
