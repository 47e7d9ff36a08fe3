#include "core/kernels/cpu/adaptive_wait.h"

#include <algorithm>
#include <utility>

#include "hwy/base.h"
#include "hwy/cache_control.h"

namespace sweep::cpu {
namespace {

using Clock = SpinBudget::Clock;
using Duration = SpinBudget::Duration;

constexpr int kPausesPerClock = 20;
constexpr Duration kPreempted = std::chrono::microseconds(200);

}  // namespace

void SpinBudget::update(Duration waited, Duration longest_gap) {
  if (longest_gap > kPreempted) {
    time_ = Duration::zero();
  } else if (waited <= kLongest) {
    time_ = std::min(time_ + kLongest / 8, kLongest);
  } else {
    time_ /= 2;
  }
}

void WaitableCounter::wake_all() {
  if (sleepers_.load() == 0) return;
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void WaitableCounter::wait_while_equal(std::uint32_t old, SpinBudget& budget) {
  if (load() != old) return;
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  Duration longest_gap{};
  bool changed = false;
  while (!changed && now - start < budget.time()) {
    for (int i = 0; i < kPausesPerClock && !changed; ++i) {
      hwy::Pause();
      changed = load() != old;
    }
    const Clock::time_point then = std::exchange(now, Clock::now());
    longest_gap = std::max(longest_gap, now - then);
  }
  if (!changed) {
    sleepers_.fetch_add(1);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return value_.load() != old; });
    }
    sleepers_.fetch_sub(1);
    now = Clock::now();
  }
  budget.update(now - start, longest_gap);
}

}  // namespace sweep::cpu
