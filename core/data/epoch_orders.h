// The shuffled orders of a training's epochs, each drawn while the epoch before it is trained.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/data/prefetcher.h"

namespace sweep {

/// To draw the order of 60,000 samples takes half a millisecond, an eighth of a whole epoch on a GPU, so a
/// thread draws the next epoch's in advance. Changes no order. One thread calls the methods.
class EpochOrders {
 public:
  /// Orders of the samples first … first + count − 1, numbers below 2^32. Throws Error if the system has no
  /// thread left. Fewer than kLeastDrawnAhead samples have no thread.
  EpochOrders(std::size_t first, std::size_t count, std::uint64_t seed, std::uint32_t repeat);
  /// Abandons the order that is being drawn.
  ~EpochOrders();
  EpochOrders(const EpochOrders&) = delete;
  EpochOrders& operator=(const EpochOrders&) = delete;

  /// `first` + shuffled_order() of `epoch`, drawn in advance if the last call was for the epoch before it.
  /// Valid until the next call.
  std::span<const std::uint32_t> of_epoch(std::uint32_t epoch);

  /// So few are shuffled in the time that it takes to wake a thread.
  static constexpr std::size_t kLeastDrawnAhead = 4096;

 private:
  void draw(std::uint32_t epoch, std::vector<std::uint32_t>& order) const;

  const std::uint32_t first_;
  const std::size_t count_;
  const std::uint64_t seed_;
  const std::uint32_t repeat_;
  std::array<std::vector<std::uint32_t>, 2> orders_;  // the one in use, and the one drawn in advance
  std::uint32_t start_ = 0;                           // the epoch of the prefetcher's item 0
  std::optional<std::uint32_t> next_;                 // the epoch that it gives next, once it was started
  std::atomic<bool> abandoned_{false};
  std::optional<Prefetcher> prefetcher_;  // last, destroyed first: its thread uses the members above
};

}  // namespace sweep
