#include "core/kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

namespace sweep::cpu {
namespace {

TEST(ThreadPool, RunsEveryPartOnceWithAStaticSchedule) {
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
        EXPECT_GE(owner[part], owner[part == 0 ? 0 : part - 1]);
        EXPECT_LT(owner[part], static_cast<std::size_t>(threads));
      }
    }
  }
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
  ThreadPool pool(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace sweep::cpu
