#include "core/base/start_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

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
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  std::string message;
  try {
    start_thread("is tested", [] {}).join();
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(message.find("cannot start a thread that is tested: "), std::string::npos) << message;
}

}  // namespace
}  // namespace sweep
