#include "core/data/epoch_orders.h"

#include <limits>
#include <numeric>

#include "core/data/shuffled_order.h"

namespace sweep {

EpochOrders::EpochOrders(std::size_t first, std::size_t count, std::uint64_t seed, std::uint32_t repeat)
    : first_(static_cast<std::uint32_t>(first)), count_(count), seed_(seed), repeat_(repeat) {
  if (count < kLeastDrawnAhead) return;
  prefetcher_.emplace(1, orders_.size(), [this](std::size_t item, std::size_t slot) {
    draw(start_ + static_cast<std::uint32_t>(item), orders_[slot]);
  });
}

EpochOrders::~EpochOrders() { abandoned_ = true; }

std::span<const std::uint32_t> EpochOrders::of_epoch(std::uint32_t epoch) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
  if (!prefetcher_) {
    draw(epoch, orders_.front());
    return orders_.front();
  }
  if (next_ != epoch) {
    abandoned_ = true;
    prefetcher_->stop();
    abandoned_ = false;
    start_ = epoch;
    prefetcher_->start(std::size_t{kLast} - epoch + 1);
  }
  next_.reset();
  const std::size_t slot = *prefetcher_->next();
  if (epoch < kLast) next_ = epoch + 1;
  return orders_[slot];
}

void EpochOrders::draw(std::uint32_t epoch, std::vector<std::uint32_t>& order) const {
  order.resize(count_);
  std::iota(order.begin(), order.end(), first_);
  shuffle(order, seed_, repeat_, epoch, abandoned_);
}

}  // namespace sweep
