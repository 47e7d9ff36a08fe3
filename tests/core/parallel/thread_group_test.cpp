#include "core/parallel/communicator.h"

#include "tests/core/parallel/communicator_contract.h"
#include "tests/support/test.h"

namespace sweep::thread_group_test {

// Calls body(end) for all ends of a group, each on a thread.
void on_all_ranks(int size, const std::function<void(Communicator&)>& body, double deadline = 60) {
  const auto ends = make_thread_group(size, "cpu:", deadline);
  std::vector<std::thread> threads;
  threads.reserve(ends.size());
  for (const auto& end : ends) threads.emplace_back([&] { body(*end); });
  for (std::thread& thread : threads) thread.join();
}

class ThreadGroupOf : public testing::TestWithParam<int> {};

TEST_P(ThreadGroupOf, KeepsTheContract) {
  on_all_ranks(GetParam(), [](Communicator& group) { EXPECT_EQ(test::broken_contract(group), ""); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadGroupOf, testing::Values(1, 2, 3, 4, 9));

TEST(ThreadGroup, NamesTheRankThatIsLate) {
  on_all_ranks(
      3,
      [](Communicator& group) {
        if (group.rank() == 1) return;  // as if it hung
        EXPECT_EQ(test::message_of<CommunicatorError>([&] { group.barrier(); }),
                  "cpu:1: has not answered for 1 s");
        // The group stays broken.
        EXPECT_THROW(group.barrier(), CommunicatorError);
      },
      0.6);
}

TEST(ThreadGroup, NamesTheRankThatHasFailed) {
  on_all_ranks(3, [](Communicator& group) {
    if (group.rank() == 2) return group.abort("out of memory");
    EXPECT_EQ(test::message_of<CommunicatorError>([&] { group.barrier(); }), "cpu:2: out of memory");
    EXPECT_EQ(test::message_of<CommunicatorError>([&] { group.check(); }), "cpu:2: out of memory");
  });
}

TEST(ThreadGroup, WaitsForRankZeroAsLongAsItTakes) {
  on_all_ranks(
      2,
      [](Communicator& group) {
        int value = group.rank() == 0 ? 5 : 0;
        if (group.rank() == 0) {
          Deadline later(0.5);  // longer than the group's deadline
          while (!later.is_over()) std::this_thread::yield();
        }
        group.broadcast(std::as_writable_bytes(std::span(&value, 1)));
        EXPECT_EQ(value, 5);
      },
      0.2);
}

}  // namespace sweep::thread_group_test
