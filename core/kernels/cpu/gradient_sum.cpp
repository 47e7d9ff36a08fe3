#include "core/kernels/cpu/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cpu/kernels/optimizer_kernels.h"

namespace sweep::cpu {
namespace {

// Aligned subtrees that cover a run of leaves are at most two of each size; a turn is a run of its own.
std::size_t max_subtrees(std::size_t parts, std::size_t runs) {
  return std::min(parts, runs * 2 * static_cast<std::size_t>(std::bit_width(parts)));
}

}  // namespace

GradientSum::GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads, DevicePlace place,
                         std::size_t turns)
    : floats_(floats), threads_(threads), place_(place), runs_(threads) {
  std::size_t most_own = max_partials;
  if (has_peers()) {
    most_own = 1;
    std::size_t most_shares = 1;
    for (std::size_t partials = 1; partials <= max_partials; ++partials) {
      assign({partials, turns, place_.count});
      most_own = std::max(most_own, own_count_);
      most_shares = std::max(most_shares, shares_.size());
    }
    shared_ = AlignedBuffer(most_shares * floats);
    device_of_.clear();
  }
  partials_ = AlignedBuffer(most_own * floats);
  device_of_.reserve(max_partials);
  own_index_.reserve(max_partials);
  run_of_.reserve(max_partials);
  total_postfix_.reserve(2 * max_partials);
  if (threads_ == 1) return;
  const std::size_t subtrees = max_subtrees(most_own, threads_ * std::min(turns, max_partials));
  sums_ = AlignedBuffer(subtrees * floats);
  subtree_runs_.reserve(subtrees);
  subtree_postfix_.resize(std::max(subtrees, subtree_postfix_.size()));
  for (Postfix& postfix : subtree_postfix_) postfix.reserve(2 * max_partials);
}

std::size_t GradientSum::end_of(const Node& node) const {
  return std::min(node.first + node.size, partial_count());
}

// Finds the subtrees that are one device's, and appends to total_postfix_ how their sums are added, by their
// number in shares_.
void GradientSum::find_shares(std::size_t first, std::size_t size) {
  const Node node{first, size, device_of_[first]};
  const auto begin = device_of_.begin();
  if (std::all_of(begin + static_cast<std::ptrdiff_t>(first),
                  begin + static_cast<std::ptrdiff_t>(end_of(node)),
                  [&](std::size_t device) { return device == node.device; })) {
    total_postfix_.push_back(static_cast<std::int16_t>(shares_.size()));
    shares_.push_back(node);
    return;
  }
  find_shares(first, size / 2);
  if (first + size / 2 >= end_of(node)) return;
  find_shares(first + size / 2, size / 2);
  total_postfix_.push_back(kAddArrays);
}

// Finds the subtrees that lie in one run of the node over leaves first … first + size − 1, size a power of
// two, all of this device, and appends to `postfix` how their sums are added.
void GradientSum::find_subtrees(std::size_t first, std::size_t size, Postfix& postfix) {
  const std::size_t end = std::min(first + size, partial_count());
  const std::size_t run = run_of_[own_index_[first]];
  if (run == run_of_[own_index_[end - 1]]) {
    const std::size_t subtree = subtree_runs_.size();
    if (subtree == subtree_postfix_.size()) subtree_postfix_.emplace_back();
    append_postfix(first, end, size, subtree_postfix_[subtree]);
    postfix.push_back(static_cast<std::int16_t>(subtree));
    subtree_runs_.push_back(run);
    return;
  }
  find_subtrees(first, size / 2, postfix);
  if (first + size / 2 >= end) return;
  find_subtrees(first + size / 2, size / 2, postfix);
  postfix.push_back(kAddArrays);
}

// Appends the sum of leaves first … end − 1 of a node of `size` leaves, all of this device.
void GradientSum::append_postfix(std::size_t first, std::size_t end, std::size_t size,
                                 Postfix& postfix) const {
  if (end - first == 1) {
    postfix.push_back(static_cast<std::int16_t>(own_index_[first]));
    return;
  }
  const std::size_t middle = first + size / 2;
  append_postfix(first, std::min(middle, end), size / 2, postfix);
  if (middle >= end) return;
  append_postfix(middle, end, size / 2, postfix);
  postfix.push_back(kAddArrays);
}

void GradientSum::begin(const PartialShares& shares) {
  if (shares.partials() != partial_count() || shares.turns() != turns_) assign(shares);
  for (std::size_t run = 0; run < threads_; ++run) {
    runs_[run].unfinished.store(
        part_begin(own_count_, threads_, run + 1) - part_begin(own_count_, threads_, run),
        std::memory_order_relaxed);
  }
}

void GradientSum::assign(const PartialShares& shares) {
  const std::size_t parts = shares.partials();
  turns_ = shares.turns();
  device_of_.resize(parts);
  own_index_.resize(parts);
  own_count_ = 0;
  for (std::size_t turn = 0; turn < turns_; ++turn) {
    for (std::size_t device = 0; device < place_.count; ++device) {
      const IndexRange range = shares.of(turn, device);
      for (std::size_t part = range.begin; part < range.end; ++part) {
        device_of_[part] = static_cast<std::uint16_t>(device);
        if (device == place_.rank) own_index_[part] = static_cast<std::uint16_t>(own_count_++);
      }
    }
  }
  run_of_.resize(own_count_);
  for (std::size_t run = 0; run < threads_; ++run) {
    const std::size_t end = part_begin(own_count_, threads_, run + 1);
    for (std::size_t part = part_begin(own_count_, threads_, run); part < end; ++part)
      run_of_[part] = static_cast<std::uint16_t>(run);
  }
  subtree_runs_.clear();
  total_postfix_.clear();
  for (Postfix& postfix : subtree_postfix_) postfix.clear();
  if (parts == 0) return;
  const auto add_node = [&](std::size_t first, std::size_t size, Postfix& postfix) {
    if (single_run()) {
      append_postfix(first, std::min(first + size, parts), size, postfix);
    } else {
      find_subtrees(first, size, postfix);
    }
  };
  if (!has_peers()) return add_node(0, std::bit_ceil(parts), total_postfix_);

  shares_.clear();
  for (Postfix& postfix : share_postfix_) postfix.clear();
  find_shares(0, std::bit_ceil(parts));
  // Each device's shares are a run of the array that is gathered, so that they are sorted by device.
  share_places_.resize(shares_.size());
  shared_begins_.assign(1, 0);
  own_shares_ = 0;
  std::size_t place = 0;
  for (std::size_t device = 0; device < place_.count; ++device) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const Node& node = shares_[i];
      if (node.device != device) continue;
      share_places_[i] = place++;
      if (device != place_.rank) continue;
      if (own_shares_ == share_postfix_.size()) share_postfix_.emplace_back();
      add_node(node.first, node.size, share_postfix_[own_shares_++]);
    }
    shared_begins_.push_back(place * floats_ * sizeof(float));
  }
  for (std::int16_t& item : total_postfix_) {
    if (item != kAddArrays) item = static_cast<std::int16_t>(share_places_[static_cast<std::size_t>(item)]);
  }
}

void GradientSum::finish_partial(std::size_t part) noexcept {
  if (single_run()) return;
  const std::size_t run = run_of_[part];
  if (runs_[run].unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::size_t b = 0; b < subtree_runs_.size(); ++b) {
    if (subtree_runs_[b] != run) continue;
    add_arrays(subtree_postfix_[b], partials_.data(), floats_, floats_, true, sums_.data() + b * floats_);
  }
}

void GradientSum::add_up_share(std::size_t begin, std::size_t count) noexcept {
  float* share = shared_.data() + shared_begins_[place_.rank] / sizeof(float) + begin;
  for (std::size_t i = 0; i < own_shares_; ++i)
    add_arrays(share_postfix_[i], own_arrays() + begin, floats_, count, true, share + i * floats_);
}

void GradientSum::total(std::size_t begin, std::size_t count, float* sum) const noexcept {
  const float* arrays = has_peers() ? shared_.data() : own_arrays();
  add_arrays(total_postfix_, arrays + begin, floats_, count, false, sum);
}

}  // namespace sweep::cpu
