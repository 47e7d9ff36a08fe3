#include "core/kernels/cpu/partial_shares.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cpu/simd/block.h"

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

}  // namespace

void PartialShares::assign(std::size_t partials, std::size_t turns, std::size_t devices) {
  if (partials == this->partials() && turns == asked_turns_ && devices == devices_) return;
  asked_turns_ = turns;
  turns_ = std::clamp<std::size_t>(turns, 1, std::max<std::size_t>(partials, 1));
  devices_ = devices;
  cuts_.clear();
  cuts_.push_back(0);
  for (std::size_t turn = 0; turn < turns_; ++turn) {
    const std::size_t end = part_begin(partials, turns_, turn + 1);
    std::size_t last = cuts_.back();
    const std::size_t most = (end - last + devices - 1) / devices;  // of a device
    for (std::size_t device = 1; device < devices; ++device) {
      const std::size_t rest = (devices - device) * most;  // what those after it can take
      const std::size_t least = std::max(std::min(last + 1, end), end > rest ? end - rest : 0);
      last = roundest(least, std::min(last + most, end));
      cuts_.push_back(last);
    }
    cuts_.push_back(end);
  }
}

}  // namespace sweep::cpu
