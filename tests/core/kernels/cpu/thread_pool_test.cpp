#include "core/kernels/cpu/thread_pool.h"

#include <sched.h>

#include "tests/support/test.h"

namespace sweep::cpu::thread_pool_test {

TEST(ThreadPool, RunsEveryPartOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const std::size_t parts : {0u, 1u, 2u, 5u, 64u}) {
      std::vector<int> calls(parts);
      std::vector<std::size_t> owner(parts);
      for (int repeat = 0; repeat < 50; ++repeat) {
        pool.run(parts, [&](std::size_t part, std::size_t thread) noexcept {
          ++calls[part];
          owner[part] = thread;
        });
      }
      for (std::size_t part = 0; part < parts; ++part) {
        EXPECT_EQ(calls[part], 50);
        EXPECT_LT(owner[part], static_cast<std::size_t>(threads));
      }
    }
  }
}

// One part of a task does not return before all others have: whoever runs it is as good as a thread that the
// scheduler has taken off its core. The other threads have to run what is left of its range.
TEST(ThreadPool, RunsThePartsOfAStalledThreadOnOthers) {
  constexpr std::size_t kParts = 12;
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    for (std::size_t stalled = 0; stalled < kParts; ++stalled) {
      std::atomic<std::size_t> others{0};
      std::atomic<bool> timed_out{false};
      pool.run(kParts, [&](std::size_t part, std::size_t) noexcept {
        if (part != stalled) {
          ++others;
          return;
        }
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (others < kParts - 1 && !timed_out) {
          timed_out = std::chrono::steady_clock::now() > deadline;
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      });
      ASSERT_FALSE(timed_out) << threads << " threads, part " << stalled;
    }
  }
}

// Restricts this thread, and the threads it starts, to the first of its cores.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof(before_), &before_);
    int core = 0;
    while (!CPU_ISSET(core, &before_)) ++core;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof(before_), &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

// Steps like those of a small network: a task of 8 parts, then a short time without one.
double seconds_of_steps(int threads) {
  const auto compute = []() noexcept {
    volatile double value = 0;
    for (int i = 0; i < 4000; ++i) value = value * 0.999 + 1;
  };
  ThreadPool pool(threads);
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < 200; ++step) {
    pool.run(8, [&](std::size_t, std::size_t) noexcept { compute(); });
    compute();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// With a busy loop beside it on the only core, a second thread cannot help. It must not do harm, either: with
// threads that yield while they wait it took 7 times as long.
TEST(ThreadPool, IsNoSlowerWithMoreThreadsBesideABusyLoop) {
  const OneCore one_core;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
    }
  });
  double least_ratio = HUGE_VAL;
  for (int round = 0; round < 5 && least_ratio > 2; ++round)
    least_ratio = std::min(least_ratio, seconds_of_steps(2) / seconds_of_steps(1));
  stop = true;
  busy.join();
  EXPECT_LT(least_ratio, 3);
}

TEST(ThreadPool, FlushesDenormalsOnlyInsideTasks) {
  volatile float tiny = 1e-38f, half = 0.5f;
  ThreadPool pool(3);
  std::vector<float> products(3, -1);
  pool.run(3, [&](std::size_t part, std::size_t) noexcept { products[part] = tiny * half; });
  EXPECT_EQ(products, std::vector<float>(3));
  EXPECT_GT(tiny * half, 0.0f);
}

TEST(ThreadPool, StopsSleepingThreads) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  {
    const ThreadPool pool(4);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until they sleep
    EXPECT_EQ(threads(), before + 3);
  }
  // The kernel lists a thread for a moment after it was joined.
  for (int wait = 0; wait < 1000 && threads() > before; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threads(), before);
}
TEST(SpinLimit, IsZeroAfterContentionAndRecoversSlowly) {
  SpinLimit limit;
  EXPECT_EQ(limit.get(), SpinLimit::kMax);
  limit.update(true);
  EXPECT_EQ(limit.get(), SpinLimit::Duration::zero());
  for (int wait = 0; wait < 20; ++wait) limit.update(false);
  EXPECT_GT(limit.get(), SpinLimit::Duration::zero());
  EXPECT_LT(limit.get(), SpinLimit::kMax / 2);
  for (int wait = 0; wait < 200; ++wait) limit.update(false);
  EXPECT_EQ(limit.get(), SpinLimit::kMax);
}

TEST(WaitableCounter, WakesThreadsThatSpinAndThreadsThatSleep) {
  WaitableCounter counter;
  SpinLimit spins, sleeps;
  sleeps.update(true);
  std::thread first([&] { counter.wait_while_equal(0, spins); });
  std::thread second([&] { counter.wait_while_equal(0, sleeps); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(counter.add(3), 3);
  counter.wake_all();
  first.join();
  second.join();
  counter.wait_while_equal(0, spins);  // Returns at once.
  EXPECT_EQ(counter.load(), 3);
}

TEST(WaitableCounter, LosesNoWakeUp) {
  WaitableCounter ping, pong;
  constexpr std::uint32_t kRounds = 2000;
  std::thread other([&] {
    SpinLimit limit;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      limit.update(true);  // Always sleeps.
      ping.wait_while_equal(round, limit);
      pong.add(1);
      pong.wake_all();
    }
  });
  SpinLimit limit;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    limit.update(true);
    ping.add(1);
    ping.wake_all();
    pong.wait_while_equal(round, limit);
  }
  other.join();
  EXPECT_EQ(pong.load(), kRounds);
}

}  // namespace sweep::cpu::thread_pool_test
