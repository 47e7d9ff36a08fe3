#include "core/kernels/cpu/adaptive_wait.h"

#include <algorithm>

#include "core/base/threads.h"
#include "hwy/base.h"
#include "hwy/cache_control.h"

namespace sweep::cpu {
namespace {

using Clock = SpinLimit::Clock;
using Duration = SpinLimit::Duration;

// About a microsecond on Intel, a quarter of one on AMD; reading the clock takes 25 ns.
constexpr int kPausesPerReading = 20;

// Between two readings of the clock. Longer than interrupts take, shorter than a time slice (0.7 ms and
// more).
constexpr Duration kPreemption = std::chrono::microseconds(200);

// From wake_all() until the sleeper runs. An idle core takes up to 100 µs, also in virtual machines.
constexpr Duration kLateWake = std::chrono::microseconds(500);

// A step has three or four waits, so full spinning is back about 40 steps after the last sign of contention.
constexpr int kWaitsToRecover = 128;

}  // namespace

void SpinLimit::update(bool contended) {
  limit_ = contended ? Duration::zero() : std::min(limit_ + kMax / kWaitsToRecover, kMax);
}

// Either this thread sees the sleeper or the sleeper sees the new value: add(), the changes of sleepers_ and
// the loads after each are sequentially consistent. Locking the mutex waits for a sleeper that is between
// its look at the value and its sleep.
void WaitableCounter::wake_all() {
  if (sleepers_.load() == 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (first_wake_ == Clock::time_point{}) first_wake_ = Clock::now();
  }
  changed_.notify_all();
}

void WaitableCounter::wait_while_equal(std::uint32_t old, SpinLimit& limit) {
  if (load() != old) return;
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  bool contended = false;
  while (!contended && now - start < limit.get() && load() == old) {
    for (int i = 0; i < kPausesPerReading && load() == old; ++i) hwy::Pause();
    const Clock::time_point reading = Clock::now();
    contended = reading - now > kPreemption;
    now = reading;
  }
  if (load() == old) {
    std::unique_lock lock(mutex_);
    if (sleepers_.fetch_add(1) == 0) first_wake_ = {};
    wait_until(changed_, lock, [&] { return value_.load() != old; });
    --sleepers_;
    if (first_wake_ != Clock::time_point{}) contended = contended || Clock::now() - first_wake_ > kLateWake;
  }
  limit.update(contended);
}

}  // namespace sweep::cpu
