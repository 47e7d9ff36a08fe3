#include "core/kernels/cuda/group_exchange.h"

#include <utility>

namespace sweep::cuda {

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

}  // namespace sweep::cuda
