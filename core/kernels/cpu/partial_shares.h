// Which device computes which of a batch's partial sums.
//
// A batch has a number of partial sums that depends on the batch and the network alone. They are trained in
// turns (EngineOptions::accumulation_steps), and in each turn shared among the devices: consecutive ranges,
// nearly equal. If a range may end at several places, it ends where the fewest subtrees of GradientSum are
// cut.
#pragma once

#include <cstddef>
#include <vector>

namespace sweep::cpu {

/// One of several devices that train together. Rank 0 of 1: the only one.
struct DevicePlace {
  std::size_t rank = 0, count = 1;
};

/// Partial sums or blocks, [begin, end).
struct IndexRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// Not thread-safe. assign() allocates only for more turns or devices than before.
class PartialShares {
 public:
  PartialShares() = default;
  /// See assign().
  PartialShares(std::size_t partials, std::size_t turns, std::size_t devices) {
    assign(partials, turns, devices);
  }

  /// Shares out `partials` in `turns` >= 1, or in as many as there are partial sums, over `devices` >= 1.
  void assign(std::size_t partials, std::size_t turns, std::size_t devices);

  std::size_t partials() const { return cuts_.back(); }
  std::size_t turns() const { return turns_; }
  /// The partial sums of a turn, and what a device has of them: consecutive ranges, which may be empty.
  IndexRange of(std::size_t turn) const { return {cuts_[turn * devices_], cuts_[(turn + 1) * devices_]}; }
  IndexRange of(std::size_t turn, std::size_t device) const {
    return {cuts_[turn * devices_ + device], cuts_[turn * devices_ + device + 1]};
  }

 private:
  std::size_t turns_ = 1, devices_ = 1, asked_turns_ = 1;
  std::vector<std::size_t> cuts_{0, 0};  // [turns · devices + 1]
};

}  // namespace sweep::cpu
