#include "core/base/start_thread.h"

#include "tests/support/address_space_limit.h"
#include "tests/support/test.h"

namespace sweep::start_thread_test {

TEST(StartThread, RunsTheBody) {
  bool called = false;
  start_thread("is tested", [&called] { called = true; }).join();
  EXPECT_TRUE(called);
}

TEST(StartThread, SaysWhatTheThreadWasForIfThereIsNone) {
  std::atomic<bool> may_end = false;
  std::vector<std::thread> threads;  // Several, because the C library keeps the stacks of ended ones.
  threads.reserve(64);
  std::string message;
  try {
    const test::AddressSpaceLimit no_more_stacks(1 << 20);
    while (threads.size() < 64)
      threads.push_back(start_thread("is tested", [&may_end] { may_end.wait(false); }));
  } catch (const Error& error) {
    message = error.what();
  }
  may_end = true;
  may_end.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(message.find("cannot start a thread that is tested: "), std::string::npos) << message;
}

}  // namespace sweep::start_thread_test
