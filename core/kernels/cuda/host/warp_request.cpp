#include "core/kernels/cuda/host/warp_request.h"

#include <algorithm>

namespace sweep::cuda::host {
namespace {

constexpr unsigned kBanks = 32, kWordBytes = 4, kSectorBytes = 32;

// The lanes' addresses without repetitions, in order.
struct Addresses {
  explicit Addresses(const WarpRequest& request, std::uint32_t lanes) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) values[count++] = request.addresses[lane];
    }
    std::sort(values.begin(), values.begin() + count);
    count = static_cast<unsigned>(std::unique(values.begin(), values.begin() + count) - values.begin());
  }
  std::array<std::uintptr_t, kWarpLanes> values;
  unsigned count = 0;
};

// The most words that one bank has to deliver.
unsigned words_of_busiest_bank(const Addresses& addresses, unsigned bytes) {
  std::array<unsigned, kBanks> words{};
  std::uintptr_t last = ~std::uintptr_t{0};
  for (unsigned i = 0; i < addresses.count; ++i) {
    const std::uintptr_t begin = addresses.values[i] / kWordBytes,
                         end = (addresses.values[i] + bytes - 1) / kWordBytes;
    for (std::uintptr_t word = begin; word <= end; ++word) {
      if (word != last) ++words[word % kBanks];  // several lanes may want parts of one word
      last = word;
    }
  }
  return *std::max_element(words.begin(), words.end());
}

}  // namespace

RequestCost shared_wavefronts(const WarpRequest& request) {
  const unsigned passes = std::max(1u, request.bytes / kWordBytes), lanes = kWarpLanes / passes;
  const std::uint64_t first = (std::uint64_t{1} << lanes) - 1;
  RequestCost cost;
  for (unsigned pass = 0; pass < passes; ++pass) {
    const auto of_pass = static_cast<std::uint32_t>(request.lanes & (first << (pass * lanes)));
    if (of_pass == 0) continue;
    cost.cost += words_of_busiest_bank(Addresses(request, of_pass), request.bytes);
    ++cost.ideal;
  }
  return cost;
}

RequestCost device_sectors(const WarpRequest& request) {
  const Addresses addresses(request, request.lanes);
  RequestCost cost;
  std::uintptr_t last = ~std::uintptr_t{0};
  for (unsigned i = 0; i < addresses.count; ++i) {
    const std::uintptr_t sector = addresses.values[i] / kSectorBytes;
    if (sector != last) ++cost.cost;
    last = sector;
  }
  cost.ideal = (addresses.count * request.bytes + kSectorBytes - 1) / kSectorBytes;
  return cost;
}

}  // namespace sweep::cuda::host
