// The exchange of parts beside the computation of the next ones: order of work, events and ranks that are
// lost. How much time it saves only GPUs can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/group_exchange.h"
#include "core/kernels/cuda/host/stream_order.h"
#include "tests/support/batch.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kParts = kGradientParts;
constexpr std::size_t kBatch = 40;

// Instead of other devices: notes which parts had gradients when an exchange began, as 1, and others as 0.
class Notes final : public PartExchange {
 public:
  explicit Notes(Stream& stream) : stream_(stream) {}

  void all(std::byte* parts, std::size_t bytes) override { note("all", parts, bytes); }
  void begin(std::byte* parts, std::size_t bytes, int round) override {
    note(std::to_string(round), parts, bytes);
  }
  void finish() override { calls.emplace_back("finish"); }

  std::vector<std::string> calls;
  std::vector<std::byte> gradients;  // of the last exchange

 private:
  void note(const std::string& call, const std::byte* parts, std::size_t bytes) {
    gradients = to_host(stream_, parts, bytes * kParts);
    calls.push_back(call + " ");
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(part * bytes);
      const bool is_zero = std::all_of(begin, begin + static_cast<std::ptrdiff_t>(bytes),
                                       [](std::byte byte) { return byte == std::byte{0}; });
      calls.back() += is_zero ? '0' : '1';
    }
  }

  Stream& stream_;
};

Notes notes_of_a_step(const NetworkSpec& spec, const GradientParts& parts, bool by_part,
                      std::size_t samples = kBatch) {
  const Network network(spec, {3, 8, 8});
  const EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = kBatch};
  ProgramOptions program = program_options(options, 0, parts);
  program.exchanges_by_part = by_part;
  DeviceRunner runner(network, program, kBatch, Placement::kHost);
  runner.upload(initial_parameters(network, 3), runner.program().parameters(), "test", "parameters");
  const test::OwnedBatch owned = test::random_batch(kBatch, 192, 10, 11);
  // This device's samples, turn by turn.
  Batch batch = owned.view();
  std::vector<std::uint32_t> rows;
  for (int turn = 0; turn < parts.turns; ++turn) {
    const SampleRange own = samples_of_parts(samples, parts, turn, parts.first, parts.end);
    rows.insert(rows.end(), batch.rows.begin() + static_cast<std::ptrdiff_t>(own.begin),
                batch.rows.begin() + static_cast<std::ptrdiff_t>(own.end));
  }
  batch.rows = rows;
  StepInput input = step_input(batch, options.loss);
  input.factors = step_factors(options.optimizer, 0.1, 1);
  runner.feed().add(runner.stream(), batch, input);
  const StepInputs inputs = runner.feed().upload(runner.stream());
  Notes notes(runner.stream());
  runner.program().train_parts(runner.stream(), static_cast<int>(samples), inputs, notes);
  return notes;
}

std::vector<std::string> calls_of_a_step(const GradientParts& parts, bool by_part,
                                         const NetworkSpec& spec = test::mlp()) {
  return notes_of_a_step(spec, parts, by_part).calls;
}

TEST(PartExchange, OfAPartBeginsBeforeTheNextIsComputed) {
  const GradientParts three{.count = kParts, .first = 5, .end = 8, .most = 3};
  EXPECT_THAT(calls_of_a_step(three, true), ElementsAre("0 00000100", "1 00000110", "2 00000111", "finish"));
  EXPECT_THAT(calls_of_a_step(three, false), ElementsAre("all 00000111"));
}

TEST(PartExchange, HasAsManyRoundsOnADeviceWithFewerParts) {
  const GradientParts two{.count = kParts, .first = 0, .end = 2, .most = 3};
  EXPECT_THAT(calls_of_a_step(two, true), ElementsAre("0 10000000", "1 11000000", "2 11000000", "finish"));
}

TEST(PartExchange, OfAPartComesBehindItsLastTurn) {
  const GradientParts turns{.turns = 2, .count = kParts, .first = 0, .end = 2, .most = 2};
  // Of all parts there are gradients of the first turn.
  EXPECT_THAT(calls_of_a_step(turns, true), ElementsAre("0 11000000", "1 11000000", "finish"));
  const Notes whole = notes_of_a_step(test::mlp(), turns, false);
  EXPECT_TRUE(notes_of_a_step(test::mlp(), turns, true).gradients == whole.gradients);
}

// The second turn has three samples in the parts 2, 5 and 7.
TEST(PartExchange, NeedsNoWorkOfTheLastTurn) {
  const GradientParts turns{.turns = 2, .count = kParts, .first = 0, .end = 4, .most = 4};
  const Notes notes = notes_of_a_step(test::mlp(), turns, true, 5);
  EXPECT_EQ(notes.calls.size(), 5U);
  EXPECT_TRUE(notes.gradients == notes_of_a_step(test::mlp(), turns, false, 5).gradients);
}

TEST(PartExchange, IsOneOfPartsThatNeedEachOthersSums) {
  const GradientParts two{.count = kParts, .first = 0, .end = 2, .most = 2};
  const std::vector<std::string> calls = calls_of_a_step(two, true, test::small_residual());
  EXPECT_EQ(calls.back(), "all 11000000");
  EXPECT_THAT(calls, Each(HasSubstr("all")));
}

TEST(PartExchange, OfALargeGradientIsByPart) {
  EXPECT_FALSE(gradient_is_worth_a_round(Network(test::deeplizard(), {1, 28, 28})));  // 0.2 MB
  const NetworkSpec wide{"wide", {test::flatten("flatten"), test::linear("fc", 334)}};
  EXPECT_TRUE(gradient_is_worth_a_round(Network(wide, {1, 28, 28})));  // 1.05 MB
}

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
    host::set_stream_seed(seed);
    const auto errors = run_three(kLate, [&](const Rank& rank) {
      std::vector<std::vector<std::byte>> seen;
      const Array<std::byte> copies(4 * kParts * kBytes, "copies");
      for (int step = 0; step < 4; ++step) {
        for (int round = 0; round < 3; ++round) {
          if (rank.first() + round < rank.end()) rank.compute(rank.first() + round, step);
          rank.exchange.begin(rank.parts, kBytes, round);
        }
        rank.exchange.finish();
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
  host::set_stream_seed(0);
}

// The time of the stream's wait, not of what it does meanwhile; of exchanges that nothing hides, all.
TEST(GroupExchange, CountsOnlyWhatIsNotHidden) {
  constexpr std::chrono::duration<double> kComputation(0.2);
  const auto errors = run_three(kLate, [&](const Rank& rank) {
    EXPECT_EQ(rank.exchange.take_seconds(), 0.0);
    rank.exchange.begin(rank.parts, kBytes, 0);
    rank.stream.enqueue([&] { std::this_thread::sleep_for(kComputation); });
    rank.exchange.finish();
    const double hidden = rank.exchange.take_seconds();
    EXPECT_GT(hidden, 0.0);
    EXPECT_LT(hidden, kComputation.count());
    rank.exchange.all(rank.parts, kBytes);
    EXPECT_GT(rank.exchange.take_seconds(), 0.0);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(GroupExchange, KeepsTheTimesOfManySteps) {
  EXPECT_THAT(run_three(kLate,
                        [&](const Rank& rank) {
                          rank.exchange.take_seconds();
                          for (int step = 0; step < 600; ++step) {
                            rank.exchange.begin(rank.parts, kBytes, 0);
                            rank.exchange.finish();
                          }
                          EXPECT_GT(rank.exchange.take_seconds(), 0.0);
                        }),
              Each(""));
}

TEST(GroupExchange, EndsAtTheDeadlineIfARankIsLostBetweenRounds) {
  const auto errors = run_three(kSoon, [&](const Rank& rank) {
    rank.compute(rank.first(), 0);
    rank.exchange.begin(rank.parts, kBytes, 0);
    if (rank.number == 1) {
      rank.devices.abort();
      throw DeviceError("lost");
    }
    rank.compute(rank.first() + 1, 0);
    rank.exchange.begin(rank.parts, kBytes, 1);
  });
  EXPECT_THAT(errors,
              ElementsAre(HasSubstr("rank 1 has not come"), "lost", HasSubstr("rank 1 has not come")));
}

}  // namespace
}  // namespace sweep::cuda
