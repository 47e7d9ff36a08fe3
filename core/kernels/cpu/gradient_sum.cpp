#include "core/kernels/cpu/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cpu/kernels/optimizer_kernels.h"

namespace sweep::cpu {
namespace {

// Branches that cover any run of parts: at most two of each size, for each thread.
std::size_t most_branches(std::size_t parts, std::size_t threads) {
  return std::min(parts, threads * 2 * static_cast<std::size_t>(std::bit_width(parts)));
}

}  // namespace

GradientSum::GradientSum(std::size_t most_parts, std::size_t floats, std::size_t threads)
    : floats_(floats), threads_(threads), parts_(most_parts * floats) {
  owner_.reserve(most_parts);
  total_order_.reserve(2 * most_parts);
  if (threads_ == 1) return;
  const std::size_t branches = most_branches(most_parts, threads_);
  sums_ = AlignedBuffer(branches * floats);
  branch_threads_.reserve(branches);
  branch_orders_.resize(branches);
  for (Order& order : branch_orders_) order.reserve(2 * most_parts);
}

// Lists the branches below the node of `size` parts (a power of two, the last ones missing) from `first` on,
// and how their sums make the node's.
void GradientSum::find_branches(std::size_t first, std::size_t size) {
  const std::size_t end = std::min(first + size, owner_.size());
  if (one_thread(first, end)) {
    order_parts(first, end, size, branch_orders_[branch_threads_.size()]);
    total_order_.push_back(static_cast<std::int16_t>(branch_threads_.size()));
    branch_threads_.push_back(owner_[first]);
    return;
  }
  find_branches(first, size / 2);
  if (first + size / 2 >= end) return;
  find_branches(first + size / 2, size / 2);
  total_order_.push_back(kAddArrays);
}

void GradientSum::order_parts(std::size_t first, std::size_t end, std::size_t size, Order& order) const {
  if (end - first == 1) {
    order.push_back(static_cast<std::int16_t>(first));
    return;
  }
  const std::size_t middle = first + size / 2;
  order_parts(first, std::min(middle, end), size / 2, order);
  if (middle >= end) return;
  order_parts(middle, end, size / 2, order);
  order.push_back(kAddArrays);
}

void GradientSum::begin(std::size_t parts) {
  if (parts == owner_.size()) return;
  owner_.resize(parts);
  for (std::size_t thread = 0; thread < threads_; ++thread) {
    const std::size_t end = part_begin(parts, threads_, thread + 1);
    for (std::size_t part = part_begin(parts, threads_, thread); part < end; ++part)
      owner_[part] = static_cast<std::uint16_t>(thread);
  }
  branch_threads_.clear();
  total_order_.clear();
  for (Order& order : branch_orders_) order.clear();
  if (parts == 0) return;
  if (alone()) {
    order_parts(0, parts, std::bit_ceil(parts), total_order_);
  } else {
    find_branches(0, std::bit_ceil(parts));
  }
}

void GradientSum::finish_part(std::size_t part, std::size_t thread) noexcept {
  if (alone() || part + 1 != part_begin(owner_.size(), threads_, thread + 1)) return;
  for (std::size_t b = 0; b < branch_threads_.size(); ++b) {
    if (branch_threads_[b] != thread) continue;
    add_arrays(branch_orders_[b], parts_.data(), floats_, floats_, true, sums_.data() + b * floats_);
  }
}

void GradientSum::total(std::size_t begin, std::size_t count, float* sum) const noexcept {
  const float* arrays = alone() ? parts_.data() : sums_.data();
  add_arrays(total_order_, arrays + begin, floats_, count, false, sum);
}

}  // namespace sweep::cpu
