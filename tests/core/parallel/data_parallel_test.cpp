// Data parallel training on threads: the bits are those of one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/engine/engine_memory.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/parallel/group_engine.h"
#include "core/parallel/replicated_engine.h"
#include "core/parallel/thread_group.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/core/parallel/parallel_training.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

using test::OwnedBatch;
using test::TrainedState;
using test::Training;
using testing::HasSubstr;
using testing::Optional;

TrainedState train(const Training& training, int data, int threads) {
  const Network network(training.network, training.input);
  const auto engine = make_engine(network, test::options_of(training, data, threads));
  return test::train(training, *engine, network);
}

class AnyDevices : public testing::TestWithParam<Training> {};

TEST_P(AnyDevices, GiveTheSameBits) {
  const TrainedState one = train(GetParam(), 1, 1);
  ASSERT_FALSE(one.outputs.empty());
  EXPECT_EQ(one, train(GetParam(), 1, 3));
  for (const int data : {2, 3, 4}) {
    for (const int threads : {1, data, 3 * data}) {
      SCOPED_TRACE(std::to_string(data) + " devices, " + std::to_string(threads) + " threads");
      EXPECT_EQ(one, train(GetParam(), data, threads));
    }
  }
}

// As a run that is killed, and resumed on another number of devices.
TEST_P(AnyDevices, GoOnWithEachOthersStates) {
  const Training& training = GetParam();
  const Network network(training.network, training.input);
  const TrainedState one = train(training, 1, 1);
  for (const int first : {4, 1, 2}) {
    const auto begun = make_engine(network, test::options_of(training, first));
    begun->set_parameters(initial_parameters(network, 3));
    test::train_batches(*begun, training, 0, 1);
    begun->take_totals();
    const auto resumed = make_engine(network, test::options_of(training, first == 2 ? 4 : 2));
    resumed->set_parameters(begun->parameters());
    resumed->set_buffers(begun->buffers());
    resumed->set_optimizer_state(begun->optimizer_state(), begun->step_count());
    test::train_batches(*resumed, training, 1, training.batches.size());
    EXPECT_EQ(resumed->parameters(), one.parameters);
    EXPECT_EQ(resumed->buffers(), one.buffers);
    EXPECT_EQ(resumed->step_count(), static_cast<std::int64_t>(training.batches.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Trainings, AnyDevices, testing::ValuesIn(test::trainings()),
                         [](const auto& tested) { return tested.param.name; });

TEST(DataParallel, TellsHowLongItWaited) {
  const Training training = test::trainings()[1];
  const Network network(training.network, training.input);
  const auto one = make_engine(network, test::options_of(training, 1));
  EXPECT_EQ(one->take_communication_seconds(), std::nullopt);
  const auto two = make_engine(network, test::options_of(training, 2));
  two->set_parameters(initial_parameters(network, 3));
  EXPECT_EQ(two->take_communication_seconds(), 0.0);
  test::train_batches(*two, training, 0, 1);
  EXPECT_GT(*two->take_communication_seconds(), 0);
  EXPECT_EQ(two->take_communication_seconds(), 0.0);
}

TEST(DataParallel, CountsHowLongTotalsAreWaitedFor) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto ends = make_thread_group(1);
  test::DelayedCommunicator group(*ends.front(), std::chrono::milliseconds(20));
  EngineOptions options;
  options.parallel.data = 2;
  const auto engine = make_group_engine(network, options, group, make_cpu_replica);
  engine->take_communication_seconds();
  engine->take_totals();
  EXPECT_GE(*engine->take_communication_seconds(), 0.02);
}

TEST(DataParallel, RefusesWrongBatchesAndGoesOn) {
  const Training training = test::trainings()[1];
  const Network network(training.network, training.input);
  const auto engine = make_engine(network, test::options_of(training, 2));
  const OwnedBatch large = test::random_batch(101, element_count(training.input), 10, 1);
  EXPECT_THROW(engine->train(large.view(), 0.1), ShapeError);
  EXPECT_THROW(engine->set_parameters(std::vector<float>(3)), ShapeError);
  EXPECT_EQ(test::train(training, *engine, network), train(training, 1, 1));
}

TEST(DataParallel, FailsWithTheDeviceThatHasFailed) {
  const Network network(test::mlp(), {1, 28, 28});
  EngineOptions options;
  options.parallel.data = 3;
  const auto make = [](const Network&, const EngineOptions&,
                       Communicator& group) -> std::unique_ptr<ReplicaEngine> {
    if (group.rank() == 2) throw std::bad_alloc();
    group.barrier();
    throw Error("not reached");
  };
  EXPECT_EQ(test::message_of<CommunicatorError>([&] { make_threaded_engine(network, options, make); }),
            "cpu:2: out of memory");
}

TEST(DataParallel, IsRefusedWhereItDoesNotExist) {
  const Network network(test::mlp(), {1, 28, 28});
  EngineOptions cpu, cuda;
  cuda.device = {DeviceType::kCuda, 0};
  cpu.accumulation_steps = 2;
  cpu.parallel.data = cuda.parallel.data = 9;
  EXPECT_EQ(parallel_unavailable_reason(network, cpu), std::nullopt);
  EXPECT_THAT(parallel_unavailable_reason(network, cuda), Optional(HasSubstr("at most 8 GPUs")));
  cpu.parallel.model = {{"fc1", "cpu:0"}};
  EXPECT_EQ(parallel_unavailable_reason(network, cpu), std::nullopt);
}

TEST(DataParallel, WithMoreProcessesThanOneIsForTheCpu) {
  const Network network(test::mlp(), {1, 28, 28});
  EngineOptions cpu;
  EXPECT_EQ(group_unavailable_reason(network, cpu, 3), std::nullopt) << "rank 0 trains alone";
  cpu.parallel.data = 6;
  EXPECT_EQ(group_unavailable_reason(network, cpu, 3), std::nullopt);
  EXPECT_THAT(group_unavailable_reason(network, cpu, 4),
              Optional(HasSubstr("with 4 MPI ranks, want 4 or a multiple of it")));
}

TEST(Accumulation, ChangesNothingWithoutBatchNormalization) {
  Training training = test::trainings()[0];
  const TrainedState whole = train(training, 1, 2);
  training.accumulate = 4;
  EXPECT_EQ(train(training, 1, 2), whole);
}

TEST(Accumulation, NormalizesEachPartByItself) {
  Training training = test::trainings()[4];
  const TrainedState whole = train(training, 1, 1);
  training.accumulate = 4;
  EXPECT_NE(train(training, 1, 1), whole);
}

// Parts of equal batches whose samples are the same have the statistics of one part.
TEST(Accumulation, TakesOneStepWithTheMeanOfItsParts) {
  Training training{"plain", test::small_residual(), {3, 8, 8}};
  training.batches = {64};
  const Network network(training.network, training.input);
  const OwnedBatch part = test::random_batch(64, element_count(training.input), 10, 11);
  OwnedBatch twice = part;
  twice.indices.insert(twice.indices.end(), part.indices.begin(), part.indices.end());
  const auto small = make_engine(network, test::options_of(training, 1));
  training.batches = {128};
  training.accumulate = 2;
  const auto large = make_engine(network, test::options_of(training, 1));
  for (Engine* engine : {small.get(), large.get()}) engine->set_parameters(initial_parameters(network, 3));
  small->train(part.view(), 0.1);
  large->train(twice.view(), 0.1);
  EXPECT_EQ(large->step_count(), 1);
  const std::vector<float> a = small->gradients(), b = large->gradients();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(a[i]))) << i;
}

TEST(EngineMemory, CountsTheStatisticsOfBatchNormalization) {
  EngineOptions options;
  options.threads = 1;
  options.batch_size = std::size_t{16} * 1000;
  const auto bytes = [&](bool normalizes) {
    NetworkSpec network;
    if (normalizes) network.layers.push_back({"norm", "batch_norm2d"});
    network.layers.push_back({"flatten", "flatten"});
    network.layers.push_back({"out", "linear", {{"out_features", std::int64_t{1}}}});
    return *engine_memory(Network(network, {256, 1, 1}), options);
  };
  // 3 and 2 doubles.
  EXPECT_GT(bytes(true) - bytes(false), std::size_t{1000} * 256 * 40) << "of each block and channel";
}

TEST(Accumulation, TakesLessMemory) {
  const Network network(test::small_residual(), {3, 8, 8});
  EngineOptions options;
  options.threads = 1;
  options.batch_size = 1024;
  const std::size_t whole = *engine_memory(network, options);
  options.accumulation_steps = 8;
  EXPECT_LT(*engine_memory(network, options), whole / 4);
}

}  // namespace
}  // namespace sweep
