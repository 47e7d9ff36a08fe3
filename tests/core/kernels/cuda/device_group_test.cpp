// The contract of NCCL, as the stand-in enforces it.

#include "core/kernels/cuda/libraries/nccl.h"

#include "tests/support/test.h"

namespace sweep::cuda::device_group_test {

using Work = std::function<void(int rank)>;

// Runs `work` as each rank, in a thread with a device of its own. Returns their errors, empty without one.
std::vector<std::string> run_ranks(int size, const Work& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        use_device(rank);
        work(rank);
      } catch (const DeviceError& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

constexpr double kSoon = 0.2, kLate = 60;  // s

std::vector<std::size_t> begins_of(std::initializer_list<std::size_t> sizes) {
  std::vector<std::size_t> begins = {0};
  for (const std::size_t size : sizes) begins.push_back(begins.back() + size);
  return begins;
}

TEST(DeviceGroup, RefusesExchangesThatDiffer) {
  const DeviceGroupId id = make_group_id();
  const auto errors = run_ranks(3, [&](int rank) {
    Stream stream;
    const Array<std::byte> array(12, "an array");
    const auto group = make_device_group(id, rank, 3, kLate);
    const auto begins = rank == 1 ? begins_of({4, 4, 3}) : begins_of({4, 4, 4});
    group->all_gather(stream, array.data(), begins);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 exchanges 11 bytes"), HasSubstr("rank 0 does with 12"))));
}

TEST(DeviceGroup, EndsAtTheDeadlineIfARankDoesNotCome) {
  const DeviceGroupId id = make_group_id();
  const auto errors = run_ranks(3, [&](int rank) {
    Stream stream;
    const Array<std::byte> array(3, "an array");
    const auto group = make_device_group(id, rank, 3, kSoon);
    if (rank == 2) group->abort();
    group->all_gather(stream, array.data(), begins_of({1, 1, 1}));
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 2 has not come"));
  EXPECT_THAT(errors[1], HasSubstr("rank 2 has not come"));
  EXPECT_THAT(errors[2], HasSubstr("rank 2 has aborted"));
  const DeviceGroupId lonely = make_group_id();
  EXPECT_THAT(run_ranks(1, [&](int rank) { const auto group = make_device_group(lonely, rank, 2, kSoon); }),
              Each(HasSubstr("rank 1 has not come")));
}

TEST(DeviceGroup, EndsAtOnceIfItsCallerKnowsThatARankDoesNotCome) {
  std::atomic<bool> is_known = false;
  const auto check = [&] {
    if (is_known) throw CommunicatorError("cuda:2 has no memory left");
  };
  const DeviceGroupId id = make_group_id(), lonely = make_group_id();
  const auto errors = run_ranks(3, [&](int rank) {
    Stream stream;
    const Array<std::byte> array(3, "an array");
    const auto group = make_device_group(id, rank, 3, kLate, check);
    if (rank == 2) {
      group->abort();
      is_known = true;
    } else {
      group->all_gather(stream, array.data(), begins_of({1, 1, 1}));
    }
  });
  EXPECT_EQ(errors[0], "cuda:2 has no memory left");
  EXPECT_EQ(errors[1], "cuda:2 has no memory left");
  EXPECT_THAT(
      run_ranks(1, [&](int rank) { const auto group = make_device_group(lonely, rank, 2, kLate, check); }),
      Each("cuda:2 has no memory left"));
}

TEST(DeviceGroup, NeedsADeviceForEachRank) {
  const DeviceGroupId id = make_group_id();
  const auto errors = run_ranks(2, [&](int rank) {
    use_device(0);
    const auto group = make_device_group(id, rank, 2, kSoon);
  });
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("have the same device"));
}

TEST(DeviceGroup, RefusesCallsAfterItsAbortInAGraphAndFromAnotherDevicesThread) {
  const struct {
    std::function<void(DeviceGroup&, Stream&)> call;
    const char* error;
  } cases[] = {{[](DeviceGroup& group, Stream& stream) {
                  group.wait(stream);
                  group.abort();
                  group.wait(stream);
                },
                "has aborted its group"},
               {[](DeviceGroup& group, Stream& stream) {
                  const Event event;
                  stream.record(event);
                  group.wait(event);
                  group.abort();
                  group.wait(event);
                },
                "has aborted its group"},
               {[](DeviceGroup& group, Stream& stream) {
                  const Array<std::byte> array(1, "an array");
                  stream.capture([&] { group.all_gather(stream, array.data(), begins_of({1})); });
                },
                "cudaErrorStreamCaptureUnsupported"},
               {[](DeviceGroup& group, Stream& stream) {
                  use_device(1);
                  group.wait(stream);
                },
                "the thread's current device is 1"}};
  for (const auto& refused : cases) {
    const auto work = [&, id = make_group_id()](int rank) {
      const auto group = make_device_group(id, rank, 1, kLate);
      Stream stream;
      refused.call(*group, stream);
    };
    EXPECT_THAT(run_ranks(1, work), Each(HasSubstr(refused.error)));
  }
}

}  // namespace sweep::cuda::device_group_test
