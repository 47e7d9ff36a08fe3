// The shuffled orders of a training's epochs, each drawn while the epoch before it is trained.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "core/base/threads.h"
#include "core/data/shuffled_order.h"

namespace sweep {

/// To draw the order of 60,000 samples takes half a millisecond, an eighth of a whole epoch on a GPU, so a
/// thread draws the next epoch's in advance, unless the system has none left. Changes no order. One thread
/// calls the methods.
class EpochOrders {
 public:
  /// Orders of the samples first … first + count − 1, numbers below 2^32. Fewer than kLeastDrawnAhead samples
  /// have no thread.
  EpochOrders(std::size_t first, std::size_t count, std::uint64_t seed, std::uint32_t repeat)
      : first_(static_cast<std::uint32_t>(first)), count_(count), seed_(seed), repeat_(repeat) {}
  /// Abandons the order that is being drawn.
  ~EpochOrders() { abandoned_ = true; }
  EpochOrders(const EpochOrders&) = delete;
  EpochOrders& operator=(const EpochOrders&) = delete;

  /// `first` + shuffled_order() of `epoch`, drawn in advance if the last call was for the epoch before it.
  /// Valid until the next call.
  std::span<const std::uint32_t> of_epoch(std::uint32_t epoch) {
    if (next_epoch_ != epoch || !next_.valid()) draw(epoch);
    order_ = next_.get();
    draw(epoch + 1);
    return order_;
  }

  /// So few are shuffled in the time that it takes to start a thread.
  static constexpr std::size_t kLeastDrawnAhead = 4096;

 private:
  void draw(std::uint32_t epoch) {
    abandoned_ = true;
    next_ = {};  // waits for the thread
    abandoned_ = false;
    next_epoch_ = epoch;
    const BlockSignals block;
    const auto policy = count_ < kLeastDrawnAhead ? std::launch::deferred  // until it is asked for
                                                  : std::launch::async | std::launch::deferred;
    next_ = std::async(policy, [this, epoch] {
      std::vector<std::uint32_t> order(count_);
      std::iota(order.begin(), order.end(), first_);
      shuffle(order, seed_, repeat_, epoch, abandoned_);
      return order;
    });
  }

  const std::uint32_t first_;
  const std::size_t count_;
  const std::uint64_t seed_;
  const std::uint32_t repeat_;
  std::vector<std::uint32_t> order_;  // in use
  std::optional<std::uint32_t> next_epoch_;
  std::atomic<bool> abandoned_{false};
  std::future<std::vector<std::uint32_t>> next_;  // last, destroyed first: its thread uses the members above
};

}  // namespace sweep
