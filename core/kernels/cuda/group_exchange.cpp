#include "core/kernels/cuda/group_exchange.h"

#include <utility>

namespace sweep::cuda {

// A round more costs the host a call of NCCL and a graph launch, 10 to 20 µs, which a step of small kernels
// has not to spare; it hides the transfer of as many parts as there are other devices. That of 1 MiB takes
// about 3 µs over NVLink (350 GB/s) and 50 µs over PCIe 4.0 (20 GB/s). So with less nothing is gained even
// where transfers are slow; with more, a part also takes the device longer to compute than the host to
// launch.
constexpr std::size_t kLeastBytes = 1 << 20;

bool gradient_is_worth_a_round(const Network& network) {
  return network.parameter_count() * sizeof(float) >= kLeastBytes;
}

GroupExchange::GroupExchange(DeviceGroup& devices, Stream& stream, std::vector<int> first_parts)
    : devices_(devices), stream_(stream), first_parts_(std::move(first_parts)) {}

void GroupExchange::all(std::byte* parts, std::size_t bytes) {
  begins_.clear();
  for (const int part : first_parts_) begins_.push_back(static_cast<std::size_t>(part) * bytes);
  if (clock_.is_full()) devices_.wait(stream_);
  clock_.start(stream_);
  devices_.all_gather(stream_, parts, begins_);
  clock_.stop(stream_);
}

void GroupExchange::begin(std::byte* parts, std::size_t bytes, int round) {
  blocks_.clear();
  for (std::size_t rank = 0; rank + 1 < first_parts_.size(); ++rank) {
    const int part = first_parts_[rank] + round;
    blocks_.push_back({static_cast<std::size_t>(part) * bytes, part < first_parts_[rank + 1] ? bytes : 0});
  }
  stream_.record(computed_);
  beside_.wait_for(computed_);
  devices_.all_gather_blocks(beside_, parts, blocks_);
}

void GroupExchange::finish() {
  // The oldest pair of the clock is of an earlier step, which is done where the exchanges of this one are.
  if (clock_.is_full()) devices_.wait(beside_);
  beside_.record(exchanged_);
  clock_.start(stream_);
  stream_.wait_for(exchanged_);
  clock_.stop(stream_);
}

}  // namespace sweep::cuda
