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
//
// Several devices share the tree: each has some of the partial sums (share_out()), adds up the largest
// subtrees that are all its own, and gets the others' sums. Then each of them adds what is left of the tree.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/parallel/communicator.h"

namespace sweep::cpu {

/// Not thread-safe unless a function says otherwise.
class GradientSum {
 public:
  /// For at most `max_partials` partial sums of `floats` floats (a multiple of a cache line), by `threads`
  /// threads of the device at `place`, in at most `turns` turns.
  GradientSum(std::size_t max_partials, std::size_t floats, std::size_t threads, DevicePlace place = {},
              std::size_t turns = 1);

  /// This device's partial sums of all turns, in their order, of `floats` each. The caller clears and fills
  /// them.
  float* partials() { return partials_.data(); }

  /// Starts a batch of as many partial sums as are shared out. Any thread may write any of this device's, but
  /// it is fastest if thread t writes the t-th of `threads` nearly equal ranges of them, as in
  /// ThreadPool::run(). Allocates nothing, unless a batch of this size is new.
  void begin(const RankShares& shares);

  /// To be called after this device's partial sum number `part`, counted from its first, has been written, in
  /// any order, by the thread that wrote it. The last call for a run adds up the run's subtrees. Thread-safe
  /// for different parts.
  void finish_partial(std::size_t part) noexcept;

  /// With several devices, after this one's partial sums are finished: adds up its subtrees for floats
  /// [begin, begin + count), multiples of a cache line. Thread-safe for different ranges.
  void add_up_share(std::size_t begin, std::size_t count) noexcept;
  /// Then: what the devices have to gather.
  SharedArray share() {
    return {static_cast<std::byte*>(static_cast<void*>(shared_.data())), shared_begins_};
  }

  /// sum[i] = gradient[begin + i] for i < count, both multiples of a cache line, after all partial sums are
  /// finished, and share() gathered. Thread-safe.
  void total(std::size_t begin, std::size_t count, float* sum) const noexcept;
  /// The same for all floats if there never is more than one partial sum: swaps its memory with that of
  /// `sum`. Otherwise does nothing and returns false.
  bool swap_total(AlignedBuffer& sum) noexcept;

 private:
  // A cache line each, as different threads write to them.
  struct alignas(64) Run {
    std::atomic<std::size_t> unfinished{0};  // its partial sums that are not written yet
  };
  using Order = std::vector<std::int16_t>;  // see add_arrays()
  // The largest subtree whose leaves are in one run; its additions are subtree_order_[begin, end).
  struct Subtree {
    std::size_t run, begin, end;
  };
  // The largest subtree that is one device's: leaves first … first + size − 1, as far as there are such, and
  // its place in shared_.
  struct Share {
    std::size_t first, size, device, place;
  };

  std::size_t partial_count() const { return device_of_.size(); }
  void assign(const RankShares& shares);
  template <class ArrayOf>
  void append_sum(std::size_t first, std::size_t size, Order& order, const ArrayOf& array_of) const;
  void append_own(std::size_t first, std::size_t size, Order& order);
  void assign_shares();

  // All partial sums of this device are in one run, so they are read directly.
  bool single_run() const { return threads_ == 1 || own_count_ <= 1; }
  bool has_peers() const { return place_.count > 1; }
  const float* own_arrays() const { return single_run() ? partials_.data() : sums_.data(); }

  std::size_t floats_, threads_;
  DevicePlace place_;
  AlignedBuffer partials_, sums_, shared_;  // sums_: [subtrees][floats]; shared_: [shares][floats]
  std::size_t turns_ = 0, own_count_ = 0;   // of the current batch
  std::vector<std::uint16_t> device_of_;    // of each partial sum
  std::vector<std::uint16_t> own_index_;    // of each partial sum of this device: its number among them
  std::vector<Run> runs_;                   // [threads]
  std::vector<Subtree> subtrees_;           // in the order of their leaves
  Order subtree_order_;
  // With several devices: how they share the tree, and how this one adds up its shares, one after the other.
  std::vector<Share> shares_;
  std::vector<std::size_t> share_ends_,
      shared_begins_;  // in share_order_; of each device, in bytes of shared_
  Order share_order_;
  Order total_order_;  // adds the shares; with one device, what own_arrays() are
};

}  // namespace sweep::cpu
