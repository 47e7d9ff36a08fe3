#include "core/kernels/cpu/gradient_sum.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/kernels/cpu/kernels/optimizer_kernels.h"

namespace sweep::cpu {

GradientSum::GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads, DevicePlace place,
                         std::size_t turns)
    : floats_(floats), threads_(threads), place_(place), runs_(threads) {
  std::size_t most_own = 1, most_shares = 1, most_subtrees = 0;
  RankShares shares;
  for (std::size_t partials = 1; partials <= max_partials; ++partials) {
    share_out(partials, turns, place_.count, shares);
    assign(shares);
    most_own = std::max(most_own, own_count_);
    most_shares = std::max(most_shares, shares_.size());
    most_subtrees = std::max(most_subtrees, subtrees_.size());
  }
  device_of_.clear();
  partials_ = AlignedBuffer(most_own * floats);
  sums_ = AlignedBuffer(most_subtrees * floats);
  if (has_peers()) shared_ = AlignedBuffer(most_shares * floats);
}

void GradientSum::begin(const RankShares& shares) {
  if (shares.begins.back() != partial_count() || shares.turns() != turns_) assign(shares);
  for (std::size_t run = 0; run < threads_; ++run) {
    runs_[run].unfinished.store(
        part_begin(own_count_, threads_, run + 1) - part_begin(own_count_, threads_, run),
        std::memory_order_relaxed);
  }
}

void GradientSum::assign(const RankShares& shares) {
  turns_ = shares.turns();
  device_of_.resize(shares.begins.back());
  own_index_.resize(shares.begins.back());
  own_count_ = 0;
  for (std::size_t turn = 0; turn < turns_; ++turn) {
    for (std::size_t device = 0; device < place_.count; ++device) {
      const IndexRange range = range_of(shares, turn, device);
      for (std::size_t part = range.begin; part < range.end; ++part) {
        device_of_[part] = static_cast<std::uint16_t>(device);
        if (device == place_.rank) own_index_[part] = static_cast<std::uint16_t>(own_count_++);
      }
    }
  }
  subtrees_.clear();
  for (Order* order : {&subtree_order_, &share_order_, &total_order_}) order->clear();
  if (partial_count() == 0) return;
  if (has_peers()) return assign_shares();
  append_own(0, std::bit_ceil(partial_count()), total_order_);
}

// Appends how the leaves first … first + size − 1 are added, as far as there are such; size is a power of
// two. array_of(first, end, size) returns the number of the array that has the sum of a node's leaves, if one
// has.
template <class ArrayOf>
void GradientSum::append_sum(std::size_t first, std::size_t size, Order& order,
                             const ArrayOf& array_of) const {
  const std::size_t end = std::min(first + size, partial_count());
  if (const std::optional<std::size_t> array = array_of(first, end, size)) {
    order.push_back(static_cast<std::int16_t>(*array));
    return;
  }
  append_sum(first, size / 2, order, array_of);
  if (first + size / 2 >= end) return;
  append_sum(first + size / 2, size / 2, order, array_of);
  order.push_back(kAddArrays);
}

// The same for a node whose leaves are all of this device, by the numbers of own_arrays().
void GradientSum::append_own(std::size_t first, std::size_t size, Order& order) {
  using Array = std::optional<std::size_t>;
  const auto partial_of = [this](std::size_t begin, std::size_t end, std::size_t) {
    return end - begin == 1 ? Array(own_index_[begin]) : Array();
  };
  if (single_run()) return append_sum(first, size, order, partial_of);
  append_sum(first, size, order, [&](std::size_t begin, std::size_t end, std::size_t leaves) {
    const std::size_t run = part_of(own_count_, threads_, own_index_[begin]);
    if (run != part_of(own_count_, threads_, own_index_[end - 1])) return Array();
    const std::size_t from = subtree_order_.size();
    append_sum(begin, leaves, subtree_order_, partial_of);
    subtrees_.push_back({run, from, subtree_order_.size()});
    return Array(subtrees_.size() - 1);
  });
}

void GradientSum::assign_shares() {
  shares_.clear();
  append_sum(0, std::bit_ceil(partial_count()), total_order_,
             [this](std::size_t first, std::size_t end, std::size_t size) {
               const std::size_t device = device_of_[first];
               for (std::size_t part = first; part < end; ++part) {
                 if (device_of_[part] != device) return std::optional<std::size_t>();
               }
               shares_.push_back({first, size, device, 0});
               return std::optional(shares_.size() - 1);
             });
  // Each device's shares are a run of the array that is gathered, so that they are sorted by device.
  shared_begins_.assign(1, 0);
  share_ends_.clear();
  std::size_t place = 0;
  for (std::size_t device = 0; device < place_.count; ++device) {
    for (Share& share : shares_) {
      if (share.device != device) continue;
      share.place = place++;
      if (device != place_.rank) continue;
      append_own(share.first, share.size, share_order_);
      share_ends_.push_back(share_order_.size());
    }
    shared_begins_.push_back(place * floats_ * sizeof(float));
  }
  for (std::int16_t& item : total_order_) {
    if (item != kAddArrays) item = static_cast<std::int16_t>(shares_[static_cast<std::size_t>(item)].place);
  }
}

void GradientSum::finish_partial(std::size_t part) noexcept {
  if (single_run()) return;
  const std::size_t run = part_of(own_count_, threads_, part);
  if (runs_[run].unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::size_t i = 0; i < subtrees_.size(); ++i) {
    const Subtree& subtree = subtrees_[i];
    if (subtree.run != run) continue;
    add_arrays(std::span(subtree_order_).subspan(subtree.begin, subtree.end - subtree.begin),
               partials_.data(), floats_, floats_, true, sums_.data() + i * floats_);
  }
}

void GradientSum::add_up_share(std::size_t begin, std::size_t count) noexcept {
  float* sum = shared_.data() + shared_begins_[place_.rank] / sizeof(float) + begin;
  std::size_t from = 0;
  for (const std::size_t end : share_ends_) {
    add_arrays(std::span(share_order_).subspan(from, end - from), own_arrays() + begin, floats_, count, true,
               sum);
    sum += floats_;
    from = end;
  }
}

bool GradientSum::swap_total(AlignedBuffer& sum) noexcept {
  if (has_peers() || partials_.size() != floats_) return false;
  std::swap(partials_, sum);
  return true;
}

void GradientSum::total(std::size_t begin, std::size_t count, float* sum) const noexcept {
  const float* arrays = has_peers() ? shared_.data() : own_arrays();
  add_arrays(total_order_, arrays + begin, floats_, count, false, sum);
}

}  // namespace sweep::cpu
