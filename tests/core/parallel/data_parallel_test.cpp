// Devices that are threads and share each batch: what they refuse, and what they take.

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replica_messages.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/communicator_contract.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/training.h"

namespace sweep::data_parallel_test {

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

// An evaluation, which takes long on rank 2, and meanwhile fails on rank 1.
struct Evaluation {
  std::atomic<bool> has_begun = false, has_ended = false;  // on rank 2
};

class FailingCommunicator final : public test::ForwardingCommunicator {
 public:
  FailingCommunicator(Communicator& group, Evaluation& evaluation)
      : ForwardingCommunicator(group), evaluation_(evaluation) {}
  void all_gather(std::span<const SharedArray> arrays) override {
    if (rank() == 1) {
      while (!evaluation_.has_begun) std::this_thread::yield();
      throw std::bad_alloc();
    }
    if (rank() == 2) {
      evaluation_.has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      evaluation_.has_ended = true;
    }
    ForwardingCommunicator::all_gather(arrays);
  }

 private:
  Evaluation& evaluation_;
};

TEST(DataParallel, WhenItFailsNobodyUsesTheBatchAnyMore) {
  const Network network(test::mlp(), {1, 28, 28});
  Evaluation evaluation;
  std::array<std::optional<FailingCommunicator>, 3> groups;
  const auto make = [&](const Network& made, const EngineOptions& options, Communicator& group) {
    auto& failing = groups.at(static_cast<std::size_t>(group.rank())).emplace(group, evaluation);
    return make_cpu_replica(made, options, failing);
  };
  EngineOptions options;
  options.batch_size = 100;
  options.parallel.data = 3;
  const auto engine = make_threaded_engine(network, options, make);
  const test::OwnedBatch batch = test::random_batch(100, 784, 10, 1);
  EXPECT_THROW(engine->evaluate(batch.view()), CommunicatorError);
  EXPECT_TRUE(evaluation.has_ended);
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

TEST(EngineMemory, CountsEveryThreadThatMayComputeAPart) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto bytes = [&](int threads, std::size_t batch_size) {
    EngineOptions options;
    options.threads = threads;
    options.batch_size = batch_size;
    return *engine_memory(network, options);
  };
  EXPECT_EQ(bytes(16, 16), bytes(1, 16)) << "one block";
  EXPECT_GT(bytes(16, 32), bytes(8, 32)) << "any of the threads may compute one of the two";
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

// A rank that shows memory to the others may free it after an error.
TEST(ThreadGroup, FailsOnlyWhenNobodyCopiesAnyMore) {
  constexpr std::size_t kBytes = std::size_t{1} << 26;
  std::vector<std::byte> source(kBytes, std::byte{1}), copy(kBytes, std::byte{0});
  on_all_ranks(3, [&](Communicator& group) {
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until rank 2 copies, which takes longer
      return group.abort("out of memory");
    }
    EXPECT_THROW(group.broadcast(group.rank() == 0 ? source : copy), CommunicatorError);
    if (group.rank() == 0) source.back() = std::byte{2};
  });
  EXPECT_NE(copy.back(), std::byte{2});
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

EngineOptions unusual_options() {
  EngineOptions options;
  options.threads = 3;
  options.batch_size = 77;
  options.optimizer = RmspropOptions{.alpha = 0.5, .centered = true};
  options.transform = {{0.5F}, {0.25F}};
  options.seed = 1234567890123;
  options.loss.class_weights = {1, 2, 3};
  options.augment.steps = {{AugmentKind::kCutout, 4}};
  options.deterministic = false;
  options.parallel.data = 4;
  options.parallel.model = {{"conv*", "cpu:1"}};
  options.parallel.pipeline = PipelineOptions{.stages = 2, .first_layers = {"fc"}, .micro_batches = 9};
  options.accumulation_steps = 6;
  return options;
}

TEST(EngineMessage, SaysAllOfAnEngine) {
  const Network network(test::small_residual(), {3, 8, 8});
  const std::vector<std::byte> message = encode_engine(network, unusual_options());
  const SentEngine sent = decode_engine(message);
  EXPECT_EQ(sent.network.parameter_count(), network.parameter_count());
  EXPECT_EQ(sent.network.layers().back().name, network.layers().back().name);
  EXPECT_EQ(sent.options.parallel, unusual_options().parallel);
  EXPECT_EQ(std::get<RmspropOptions>(sent.options.optimizer).alpha, 0.5);
  EXPECT_EQ(sent.options.loss.class_weights, unusual_options().loss.class_weights);
  EXPECT_EQ(encode_engine(sent.network, sent.options), message);
}

TEST(EngineMessage, RefusesDamage) {
  std::vector<std::byte> message = encode_engine(Network(test::mlp(), {1, 28, 28}), unusual_options());
  for (std::size_t size = 0; size < message.size(); size += 7)
    EXPECT_THROW(decode_engine(std::span(message).first(size)), DataError);
  message.push_back({});
  EXPECT_THROW(decode_engine(message), DataError);
}

using namespace std::chrono_literals;

TEST(Deadline, EndsWhenItsTimeIsOver) {
  const Deadline::Clock::time_point start{};
  Deadline deadline(3, start);
  EXPECT_FALSE(deadline.is_over(start + 1s));
  EXPECT_FALSE(deadline.is_over(start + 2s));
  EXPECT_FALSE(deadline.is_over(start + 2900ms));
  EXPECT_TRUE(deadline.is_over(start + 3s));
}

TEST(Deadline, CountsASecondOfTheTimeInWhichTheProcessDidNotRun) {
  const Deadline::Clock::time_point start{};
  Deadline deadline(3, start);
  EXPECT_FALSE(deadline.is_over(start + 1h));
  EXPECT_FALSE(deadline.is_over(start + 2h));
  EXPECT_TRUE(deadline.is_over(start + 3h));
}

}  // namespace sweep::data_parallel_test
