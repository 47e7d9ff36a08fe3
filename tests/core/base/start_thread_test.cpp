#include "core/base/start_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <vector>

namespace sweep {
namespace {

TEST(StartThread, RunsTheBody) {
  bool called = false;
  start_thread("is tested", [&called] { called = true; }).join();
  EXPECT_TRUE(called);
}

TEST(StartThread, SaysWhatTheThreadWasForIfThereIsNone) {
  // A thread needs address space for its stack.
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{(pages + 256) * static_cast<std::size_t>(::getpagesize()), before.rlim_max};
  std::atomic<bool> may_end = false;
  std::vector<std::thread> threads;  // Several, because the C library keeps the stacks of ended ones.
  threads.reserve(64);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  std::string message;
  try {
    while (threads.size() < 64)
      threads.push_back(start_thread("is tested", [&may_end] { may_end.wait(false); }));
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  may_end = true;
  may_end.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(message.find("cannot start a thread that is tested: "), std::string::npos) << message;
}

}  // namespace
}  // namespace sweep
