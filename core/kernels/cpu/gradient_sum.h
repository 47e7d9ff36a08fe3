// Reduces a batch's partial gradients, in an order that depends only on how many there are.
//
// The order is a binary tree over the partial sums: (0 + 1) + (2 + 3), and so on, for the next power of two,
// without the leaves that do not exist. Floating-point addition is not associative, so a fixed tree is what
// makes the bits independent of the number of threads.
//
// Each partial sum is written by one thread, its owner. An owner of all leaves of a subtree adds that
// subtree up itself, out of its own cache, when its last partial sum is done. total() then adds the
// subtrees' sums, for ranges of the parameters and on any thread. Subtree sums are stored past the caches
// (streaming stores): writing a cache line that another core has read takes 36 ns on Zen 4, measured, and
// one that no other core has 1 ns. So partial sums are only ever touched by their owner, and what other
// cores read is never written through a cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Not thread-safe unless a function says otherwise.
class GradientSum {
 public:
  /// For at most `max_partials` partial sums of `floats` floats (a multiple of a cache
  /// line), by `threads` threads.
  GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads);

  /// All partial sums: [max_partials][floats]. The caller clears and fills them.
  float* partials() { return partials_.data(); }

  /// Starts a batch of `parts` partial sums. Thread t has to write the t-th of `threads` nearly equal runs of
  /// them, as ThreadPool::run() assigns them. Allocates nothing.
  void begin(std::size_t parts);

  /// To be called after partial sum `part` has been written, in any order, by the thread that wrote it. The
  /// last call for a run adds up the run's subtrees. Thread-safe for different parts.
  void finish_partial(std::size_t part) noexcept;

  /// sum[i] = gradient[begin + i] for i < count, both multiples of a cache line, after all partial sums are
  /// finished. Thread-safe.
  void total(std::size_t begin, std::size_t count, float* sum) const noexcept;

 private:
  struct alignas(64) Run {
    std::atomic<std::size_t> unfinished{0};
  };
  using Postfix = std::vector<std::int16_t>;  // an expression in postfix notation; see add_arrays()

  bool one_thread(std::size_t first, std::size_t end) const { return owner_[first] == owner_[end - 1]; }
  void find_subtrees(std::size_t first, std::size_t size);
  void append_postfix(std::size_t first, std::size_t end, std::size_t size, Postfix& postfix) const;

  // One thread has all partial sums, so total() reads them directly. ThreadPool runs a
  // single part on the first thread.
  bool single_owner() const { return threads_ == 1 || owner_.size() <= 1; }

  std::size_t floats_, threads_;
  AlignedBuffer partials_, sums_;     // sums_: [subtrees][floats]
  std::vector<std::uint16_t> owner_;  // run of each partial sum
  std::vector<Run> runs_;
  // The largest subtrees whose leaves one thread has, in the order of their leaves:
  // the thread, and the additions.
  std::vector<std::size_t> subtree_threads_;
  std::vector<Postfix> subtree_postfix_;
  Postfix total_postfix_;  // adds the subtrees' sums; with a single owner, the partial sums
};

}  // namespace sweep::cpu
