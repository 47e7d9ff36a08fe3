// The exchange of parts between devices: order of work, and ranks that are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/kernels/cuda/group_exchange.h"
#include "core/kernels/cuda/kernels/sum_order.h"
#include "tests/cudart/machine.h"

namespace sweep::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kParts = kGradientParts;

constexpr std::size_t kBytes = 100;
constexpr double kSoon = 0.2, kLate = 60;  // s

// Three ranks that have 2, 3 and 3 parts, each in a thread with a device of its own. Returns their errors.
struct Rank {
  const int number;
  Stream& stream;
  DeviceGroup& devices;
  GroupExchange& exchange;
  std::byte* parts;

  int first() const { return kParts * number / 3; }
  int end() const { return kParts * (number + 1) / 3; }
  void compute(int part, int step) const {
    stream.enqueue([at = parts + static_cast<std::size_t>(part) * kBytes, value = value_of(part, step)] {
      std::fill_n(at, kBytes, value);
    });
  }
  static std::byte value_of(int part, int step) { return static_cast<std::byte>(16 * step + part); }
};
std::vector<std::string> run_three(double deadline, const std::function<void(const Rank&)>& work) {
  const DeviceGroupId id = DeviceGroup::make_id();
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      try {
        use_device(number);
        Stream stream;
        const Array<std::byte> parts(kParts * kBytes, "parts");
        DeviceGroup devices(id, number, 3, deadline);
        GroupExchange exchange(devices, stream, {0, 2, 5, 8});
        work({number, stream, devices, exchange, parts.data()});
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(number)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(GroupExchange, BringsEveryPartWhateverStreamsWaitFor) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    cudart::set_stream_seed(seed);
    const auto errors = run_three(kLate, [&](const Rank& rank) {
      const Array<std::byte> copies(4 * kParts * kBytes, "copies");
      for (int step = 0; step < 4; ++step) {
        for (int part = rank.first(); part < rank.end(); ++part) rank.compute(part, step);
        rank.exchange.all(rank.parts, kBytes);
        // Work that needs them, before the next step writes them.
        rank.stream.copy(copies.data() + static_cast<std::size_t>(step) * kParts * kBytes, rank.parts,
                         kParts * kBytes);
      }
      rank.devices.wait(rank.stream);
      const std::vector<std::byte> all = to_host(rank.stream, copies.data(), copies.size());
      for (int step = 0; step < 4; ++step) {
        for (int part = 0; part < kParts; ++part) {
          const auto begin = all.begin() + static_cast<std::ptrdiff_t>(kBytes) * (step * kParts + part);
          EXPECT_THAT(std::vector(begin, begin + kBytes), Each(Rank::value_of(part, step)))
              << "rank " << rank.number << ", step " << step << ", part " << part << ", seed " << seed;
        }
      }
    });
    EXPECT_THAT(errors, Each(""));
  }
  cudart::set_stream_seed(0);
}

TEST(GroupExchange, KeepsTheTimesOfManySteps) {
  EXPECT_THAT(run_three(kLate,
                        [&](const Rank& rank) {
                          EXPECT_EQ(rank.exchange.take_seconds(), 0.0);
                          for (int step = 0; step < 600; ++step) rank.exchange.all(rank.parts, kBytes);
                          EXPECT_GT(rank.exchange.take_seconds(), 0.0);
                        }),
              Each(""));
}

TEST(GroupExchange, EndsAtTheDeadlineIfARankIsLost) {
  const auto errors = run_three(kSoon, [&](const Rank& rank) {
    rank.exchange.all(rank.parts, kBytes);
    if (rank.number == 1) {
      rank.devices.abort();
      throw DeviceError("lost");
    }
    rank.exchange.all(rank.parts, kBytes);
    rank.devices.wait(rank.stream);
  });
  EXPECT_THAT(errors,
              ElementsAre(HasSubstr("rank 1 has not come"), "lost", HasSubstr("rank 1 has not come")));
}

}  // namespace
}  // namespace sweep::cuda
