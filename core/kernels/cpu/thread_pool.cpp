#include "core/kernels/cpu/thread_pool.h"

#include <algorithm>

#include "core/base/threads.h"
#include "core/kernels/cpu/simd/block.h"
#include "hwy/base.h"
#include "hwy/cache_control.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

// Flushes denormal floats, those below 1.2e-38, to zero while the engine computes.
//
// While an object exists, this thread's float arithmetic reads and writes denormal numbers as zero
// (FTZ and DAZ); the destructor restores the former mode. Processors handle denormals in microcode,
// about a hundred times slower, and training produces them: Adam's moments of a weight that gets no
// gradient any more decay into them.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040u);  // bits 15 and 6: FTZ and DAZ
  }
  ~FlushDenormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | (std::uint64_t{1} << 24)));  // FZ
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  FlushDenormals() = default;
  ~FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  std::uint32_t saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_;
#endif
};

// Claims the first unclaimed part of a range. Returns the number of unclaimed parts, this one included, or 0
// if there was none. Acquires what was written before the range was published.
std::uint32_t claim(std::atomic<std::uint32_t>& unclaimed) {
  std::uint32_t left = unclaimed.load(std::memory_order_relaxed);
  while (left != 0 && !unclaimed.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                                       std::memory_order_relaxed)) {
  }
  return left;
}

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

ThreadPool::ThreadPool(int threads) : threads_(static_cast<std::size_t>(threads)) {
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int t = 1; t < threads; ++t) {
      workers_.push_back(start_thread("computes", [this, t] { work(static_cast<std::size_t>(t)); }));
    }
  } catch (...) {
    join();  // A running thread must not outlive the members it uses.
    throw;
  }
}

ThreadPool::~ThreadPool() { join(); }

void ThreadPool::join() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.add(1);
  generation_.wake_all();
  for (std::thread& worker : workers_) worker.join();
}

// Runs parts until none is unclaimed, and returns their number. They are all of one task: until they are
// subtracted from unfinished_, the next one cannot begin.
std::uint32_t ThreadPool::run_parts(std::size_t thread) {
  std::uint32_t done = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::size_t range = (thread + i) % size();
    while (const std::uint32_t left = claim(threads_[range].unclaimed)) {
      const Task& task = *task_;
      task.call(task.context, part_begin(task.parts, size(), range + 1) - left, thread);
      ++done;
    }
  }
  return done;
}

void ThreadPool::run_task(const Task& task) {
  const FlushDenormals flush;
  if (workers_.empty() || task.parts <= 1) {
    for (std::size_t part = 0; part < task.parts; ++part) task.call(task.context, part, 0);
    return;
  }
  task_ = &task;
  unfinished_.store(static_cast<std::uint32_t>(task.parts));
  for (std::size_t t = 0; t < size(); ++t) {
    const std::size_t parts = part_begin(task.parts, size(), t + 1) - part_begin(task.parts, size(), t);
    threads_[t].unclaimed.store(static_cast<std::uint32_t>(parts), std::memory_order_release);
  }
  generation_.add(1);
  generation_.wake_all();
  const std::uint32_t done = run_parts(0);
  for (std::uint32_t left = unfinished_.add(0 - done); left != 0; left = unfinished_.load())
    unfinished_.wait_while_equal(left, threads_[0].spin_limit);
}

void ThreadPool::work(std::size_t thread) {
  const FlushDenormals flush;
  std::uint32_t seen = 0;
  for (;;) {
    generation_.wait_while_equal(seen, threads_[thread].spin_limit);
    seen = generation_.load();
    if (stop_.load(std::memory_order_relaxed)) return;
    const std::uint32_t done = run_parts(thread);
    if (done != 0 && unfinished_.add(0 - done) == 0) unfinished_.wake_all();
  }
}

}  // namespace sweep::cpu
