// Devices that are threads and share each batch: what they refuse, and what they take.

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/training.h"

#include "tests/support/test.h"

namespace sweep::data_parallel_test {

using testing::Optional;

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
  const test::Training training = test::shared_trainings()[1];
  const auto engine = test::engine_of(training, {.data = 2});
  const test::OwnedBatch large = test::random_batch(101, element_count(training.input), 10, 1);
  EXPECT_THROW(engine->train(large.view(), 0.1), ShapeError);
  EXPECT_THROW(engine->set_parameters(std::vector<float>(3)), ShapeError);
  EXPECT_TRUE(test::same_bits(test::train(*engine, training), test::train(training, test::Way{})));
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

// One with a large part of a large network computes for minutes.
TEST(DataParallel, HasNoDeadlineForThreadsOfTheCpu) {
  EngineOptions options;
  options.parallel.data = 2;
  std::atomic<double> deadline = 0;
  const auto make = [&](const Network&, const EngineOptions&,
                        Communicator& group) -> std::unique_ptr<ReplicaEngine> {
    deadline = group.deadline();
    throw Error("no engine is needed");
  };
  EXPECT_THROW(make_threaded_engine(Network(test::mlp(), {1, 28, 28}), options, make), Error);
  EXPECT_EQ(deadline, std::numeric_limits<double>::infinity());
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

}  // namespace sweep::data_parallel_test
