#include "core/kernels/cpu/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cpu/kernels/optimizer_kernels.h"

namespace sweep::cpu {
namespace {

// Aligned subtrees that cover any run of leaves: for each thread, at most two of each size.
std::size_t max_subtrees(std::size_t parts, std::size_t threads) {
  return std::min(parts, threads * 2 * static_cast<std::size_t>(std::bit_width(parts)));
}

}  // namespace

GradientSum::GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads)
    : floats_(floats), threads_(threads), partials_(max_partials * floats), runs_(threads) {
  owner_.reserve(max_partials);
  total_postfix_.reserve(2 * max_partials);
  if (threads_ == 1) return;
  const std::size_t subtrees = max_subtrees(max_partials, threads_);
  sums_ = AlignedBuffer(subtrees * floats);
  subtree_threads_.reserve(subtrees);
  subtree_postfix_.resize(subtrees);
  for (Postfix& postfix : subtree_postfix_) postfix.reserve(2 * max_partials);
}

// Finds the single-owner subtrees of the node over leaves first … first + size − 1, size a power of two
// (leaves from owner_.size() on do not exist), and appends to total_postfix_ how their sums are added.
void GradientSum::find_subtrees(std::size_t first, std::size_t size) {
  const std::size_t end = std::min(first + size, owner_.size());
  if (one_thread(first, end)) {
    append_postfix(first, end, size, subtree_postfix_[subtree_threads_.size()]);
    total_postfix_.push_back(static_cast<std::int16_t>(subtree_threads_.size()));
    subtree_threads_.push_back(owner_[first]);
    return;
  }
  find_subtrees(first, size / 2);
  if (first + size / 2 >= end) return;
  find_subtrees(first + size / 2, size / 2);
  total_postfix_.push_back(kAddArrays);
}

// Appends the sum of leaves first … end − 1 of a node of `size` leaves.
void GradientSum::append_postfix(std::size_t first, std::size_t end, std::size_t size,
                                 Postfix& postfix) const {
  if (end - first == 1) {
    postfix.push_back(static_cast<std::int16_t>(first));
    return;
  }
  const std::size_t middle = first + size / 2;
  append_postfix(first, std::min(middle, end), size / 2, postfix);
  if (middle >= end) return;
  append_postfix(middle, end, size / 2, postfix);
  postfix.push_back(kAddArrays);
}

void GradientSum::begin(std::size_t parts) {
  for (std::size_t run = 0; run < threads_; ++run) {
    runs_[run].unfinished.store(part_begin(parts, threads_, run + 1) - part_begin(parts, threads_, run),
                                std::memory_order_relaxed);
  }
  if (parts == owner_.size()) return;
  owner_.resize(parts);
  for (std::size_t thread = 0; thread < threads_; ++thread) {
    const std::size_t end = part_begin(parts, threads_, thread + 1);
    for (std::size_t part = part_begin(parts, threads_, thread); part < end; ++part)
      owner_[part] = static_cast<std::uint16_t>(thread);
  }
  subtree_threads_.clear();
  total_postfix_.clear();
  for (Postfix& postfix : subtree_postfix_) postfix.clear();
  if (parts == 0) return;
  if (single_owner()) {
    append_postfix(0, parts, std::bit_ceil(parts), total_postfix_);
  } else {
    find_subtrees(0, std::bit_ceil(parts));
  }
}

void GradientSum::finish_partial(std::size_t part) noexcept {
  if (single_owner()) return;
  const std::size_t run = owner_[part];
  if (runs_[run].unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::size_t b = 0; b < subtree_threads_.size(); ++b) {
    if (subtree_threads_[b] != run) continue;
    add_arrays(subtree_postfix_[b], partials_.data(), floats_, floats_, true, sums_.data() + b * floats_);
  }
}

void GradientSum::total(std::size_t begin, std::size_t count, float* sum) const noexcept {
  const float* arrays = single_owner() ? partials_.data() : sums_.data();
  add_arrays(total_postfix_, arrays + begin, floats_, count, false, sum);
}

}  // namespace sweep::cpu
