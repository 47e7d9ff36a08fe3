#include "core/kernels/cpu/partial_shares.h"

#include <algorithm>
#include <bit>

namespace sweep::cpu {
namespace {

// The number in [least, most], or `least` if that is larger, that the largest power of two divides; of
// several, the first.
std::size_t roundest(std::size_t least, std::size_t most) {
  if (least == 0 || least >= most) return least;
  // All numbers of the range agree in the bits above the highest in which least − 1 and most differ.
  const std::size_t low = std::bit_floor((least - 1) ^ most);
  return most & ~(low - 1);
}

// Partial sums of a small batch's gradient, if it has that many blocks. A network without convolutions does
// only a few operations per weight and sample (less than 8 here), so adding the partial sums is a large part
// of its step, and it gets fewer of them.
std::size_t min_partials(const Network& network) {
  return network.forward_flops() < 8 * static_cast<double>(network.parameter_count()) ? 4 : 16;
}

}  // namespace

void share_out(std::size_t partials, std::size_t turns, std::size_t devices, RankShares& shares) {
  turns = std::clamp<std::size_t>(turns, 1, std::max<std::size_t>(partials, 1));
  shares.ranks = devices;
  shares.begins.clear();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const std::size_t end = part_begin(partials, turns, turn + 1);
    std::size_t last = part_begin(partials, turns, turn);
    const std::size_t most = (end - last + devices - 1) / devices;  // of a device
    shares.begins.push_back(last);
    for (std::size_t device = 1; device < devices; ++device) {
      const std::size_t rest = (devices - device) * most;  // what those after it can take
      const std::size_t least = std::max(std::min(last + 1, end), end > rest ? end - rest : 0);
      last = roundest(least, std::min(last + most, end));
      shares.begins.push_back(last);
    }
    shares.begins.push_back(end);
  }
}

// The number of partial sums of a batch's gradient. It depends on the batch and the network alone, never on
// the number of threads, because it decides the order of additions. Large batches have one sum per 4 blocks,
// but at most 64: enough for many cores, while the final reduction, a pass over all partial sums, stays
// cheap. All of them together take at most 256 MB.
std::size_t partial_count(const Network& network, const Program& program, std::size_t blocks) {
  constexpr std::size_t kMemory = (std::size_t{256} << 20) / sizeof(float);
  const std::size_t preferred =
      std::clamp<std::size_t>(blocks / 4, std::min(blocks, min_partials(network)), 64);
  return std::clamp<std::size_t>(kMemory / std::max<std::size_t>(program.parameter_floats(), 1), 1,
                                 std::max<std::size_t>(preferred, 1));
}

// Turns in which the partial sums of a batch are trained. Only with batch normalization does a turn of its
// own change anything: without it, a block's memory is free again when it has been trained.
std::size_t turns_of(const EngineOptions& options, const Program& program) {
  return program.phases() > 1 ? static_cast<std::size_t>(std::max(options.accumulation_steps, 1)) : 1;
}

std::size_t most_blocks_at_once(const Network& network, const Program& program, std::size_t max_blocks,
                                std::size_t turns, DevicePlace place) {
  if (turns == 1 && place.count == 1) return max_blocks;
  std::size_t most = 1;
  RankShares shares;
  for (std::size_t blocks = 1; blocks <= max_blocks; ++blocks) {
    const std::size_t partials = partial_count(network, program, blocks);
    share_out(partials, turns, place.count, shares);
    for (std::size_t turn = 0; turn < shares.turns(); ++turn)
      most = std::max(most, blocks_of(blocks, partials, range_of(shares, turn, place.rank)).size());
  }
  return most;
}

}  // namespace sweep::cpu
