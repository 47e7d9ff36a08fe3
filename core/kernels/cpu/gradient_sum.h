// Reduces a batch's partial gradients, in an order that depends only on how many there are.
//
// The order is a binary tree over the partial sums: (0 + 1) + (2 + 3), and so on, for the next power of two,
// without the leaves that do not exist. Floating-point addition is not associative, so a fixed tree is what
// makes the bits independent of the number of threads.
//
// The partial sums are cut into one run per thread, the same ranges that ThreadPool hands out, so a run is
// usually written by one thread. Whoever finishes the last partial sum of a run adds up the run's subtrees,
// out of its own cache. total() then adds the subtrees' sums, for ranges of the parameters and on any thread.
// Subtree sums are stored past the caches (streaming stores): writing a cache line that another core has
// read takes 36 ns on Zen 4, measured, and one that no other core has 1 ns. So partial sums are touched by
// one thread, except for those that a thread takes over from another, and what other cores read is never
// written through a cache. Who writes a partial sum changes the time but not the bits.
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

  /// Starts a batch of `parts` partial sums. Any thread may write any of them, but it is fastest if thread t
  /// writes the t-th of `threads` nearly equal ranges, as in ThreadPool::run(). Allocates nothing.
  void begin(std::size_t parts);

  /// To be called after partial sum `part` has been written, in any order, by the thread that wrote it. The
  /// last call for a run adds up the run's subtrees. Thread-safe for different parts.
  void finish_partial(std::size_t part) noexcept;

  /// sum[i] = gradient[begin + i] for i < count, both multiples of a cache line, after all partial sums are
  /// finished. Thread-safe.
  void total(std::size_t begin, std::size_t count, float* sum) const noexcept;

 private:
  // A cache line each, as different threads write to them.
  struct alignas(64) Run {
    std::atomic<std::size_t> unfinished{0};  // its partial sums that are not written yet
  };
  using Postfix = std::vector<std::int16_t>;  // an expression in postfix notation; see add_arrays()

  bool in_one_run(std::size_t first, std::size_t end) const { return run_of_[first] == run_of_[end - 1]; }
  void find_subtrees(std::size_t first, std::size_t size);
  void append_postfix(std::size_t first, std::size_t end, std::size_t size, Postfix& postfix) const;

  // All partial sums are in one run, so total() reads them directly.
  bool single_run() const { return threads_ == 1 || run_of_.size() <= 1; }

  std::size_t floats_, threads_;
  AlignedBuffer partials_, sums_;      // sums_: [subtrees][floats]
  std::vector<std::uint16_t> run_of_;  // run of each partial sum
  std::vector<Run> runs_;              // [threads]
  // The largest subtrees whose leaves are in one run, in the order of their leaves: the run, and the
  // additions.
  std::vector<std::size_t> subtree_runs_;
  std::vector<Postfix> subtree_postfix_;
  Postfix total_postfix_;  // adds the subtrees' sums; with a single run, the partial sums
};

}  // namespace sweep::cpu
