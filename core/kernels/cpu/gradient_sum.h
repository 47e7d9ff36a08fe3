// Adds a batch's partial gradients up, in an order that depends on how many there are and on nothing else.
//
// The order is a binary tree over the parts. Each thread first adds up the branches that it has all parts of,
// out of its own cache, and sends the sums past the caches to memory. What another core has read is slow to
// write again (on Zen 4 36 ns for each cache line, measured, where a line that no one else has takes 1 ns),
// so parts are only ever touched by the thread that owns them, and sums are never written through a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Not thread-safe but where said.
class GradientSum {
 public:
  /// For at most `max_partials` parts of `floats` (whole cache lines) each, made by `threads` threads.
  GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads);

  /// All parts, one after the other.
  float* partials() { return partials_.data(); }

  /// A batch of `parts` parts comes; thread t makes the t-th of `threads` nearly equal runs of them, as
  /// ThreadPool::run() deals them out. Allocates nothing.
  void begin(std::size_t parts);

  /// To be called by the thread that wrote part number `part`. After the last of its run it adds up what it
  /// can. Thread-safe for different threads.
  void finish_partial(std::size_t part, std::size_t thread) noexcept;

  /// sum[i] = gradient[begin + i], i < count, whole cache lines, when all parts are finished. Thread-safe.
  void total(std::size_t begin, std::size_t count, float* sum) const noexcept;

 private:
  using Postfix = std::vector<std::int16_t>;  // see add_arrays()

  bool one_thread(std::size_t first, std::size_t end) const { return owner_[first] == owner_[end - 1]; }
  void find_subtrees(std::size_t first, std::size_t size);
  void append_postfix(std::size_t first, std::size_t end, std::size_t size, Postfix& postfix) const;

  // One thread makes all parts: nothing to bring together. ThreadPool runs a single part on the first thread.
  bool single_owner() const { return threads_ == 1 || owner_.size() <= 1; }

  std::size_t floats_, threads_;
  AlignedBuffer partials_, sums_;     // sums_: one array per branch
  std::vector<std::uint16_t> owner_;  // thread of each part
  // Branches of the tree that one thread has all parts of, in the order of their parts: whose, and how their
  // parts are added up.
  std::vector<std::size_t> subtree_threads_;
  std::vector<Postfix> subtree_postfix_;
  Postfix total_postfix_;  // of the branches' sums, or with one thread of the parts
};

}  // namespace sweep::cpu
