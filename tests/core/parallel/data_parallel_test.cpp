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

using namespace std::chrono_literals;

Network mlp() { return {test::mlp(), {1, 28, 28}}; }

EngineOptions replicas(int count, std::size_t batch_size = 1) {
  return {.batch_size = batch_size, .parallel = {.data = count}};
}

TEST(DataParallel, CountsHowLongTotalsAreWaitedFor) {
  const auto ends = make_thread_group(1);
  test::DelayedCommunicator group(*ends.front(), 20ms);
  const auto engine = make_group_engine(mlp(), replicas(2), group, make_cpu_replica);
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
  const auto make = [](const Network&, const EngineOptions&,
                       Communicator& group) -> std::unique_ptr<ReplicaEngine> {
    if (group.rank() == 2) throw std::bad_alloc();
    group.barrier();
    throw Error("not reached");
  };
  EXPECT_EQ(message_of<CommunicatorError>([&] { make_threaded_engine(mlp(), replicas(3), make); }),
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
      std::this_thread::sleep_for(50ms);
      evaluation_.has_ended = true;
    }
    ForwardingCommunicator::all_gather(arrays);
  }

 private:
  Evaluation& evaluation_;
};

TEST(DataParallel, WhenItFailsNobodyUsesTheBatchAnyMore) {
  Evaluation evaluation;
  std::array<std::optional<FailingCommunicator>, 3> groups;
  const auto make = [&](const Network& made, const EngineOptions& options, Communicator& group) {
    auto& failing = groups.at(static_cast<std::size_t>(group.rank())).emplace(group, evaluation);
    return make_cpu_replica(made, options, failing);
  };
  const auto engine = make_threaded_engine(mlp(), replicas(3, 100), make);
  const test::OwnedBatch batch = test::random_batch(100, 784, 10, 1);
  EXPECT_THROW(engine->evaluate(batch.view()), CommunicatorError);
  EXPECT_TRUE(evaluation.has_ended);
}

// One with a large part of a large network computes for minutes.
TEST(DataParallel, HasNoDeadlineForThreadsOfTheCpu) {
  std::atomic<double> deadline = 0;
  const auto make = [&](const Network&, const EngineOptions&,
                        Communicator& group) -> std::unique_ptr<ReplicaEngine> {
    deadline = group.deadline();
    throw Error("no engine is needed");
  };
  EXPECT_THROW(make_threaded_engine(mlp(), replicas(2), make), Error);
  EXPECT_EQ(deadline, std::numeric_limits<double>::infinity());
}

TEST(DataParallel, IsRefusedWhereItDoesNotExist) {
  EngineOptions cpu = replicas(9), cuda = replicas(9);
  cuda.device = {DeviceType::kCuda, 0};
  cpu.accumulation_steps = 2;
  EXPECT_EQ(parallel_unavailable_reason(mlp(), cpu), std::nullopt);
  EXPECT_THAT(parallel_unavailable_reason(mlp(), cuda), Optional(HasSubstr("at most 8 GPUs")));
  cpu.parallel.model = {{"fc1", "cpu:0"}};
  EXPECT_EQ(parallel_unavailable_reason(mlp(), cpu), std::nullopt);
}

TEST(DataParallel, WithMoreProcessesThanOneIsForTheCpu) {
  EXPECT_EQ(group_unavailable_reason(mlp(), replicas(1), 3), std::nullopt) << "rank 0 trains alone";
  EXPECT_EQ(group_unavailable_reason(mlp(), replicas(6), 3), std::nullopt);
  EXPECT_THAT(group_unavailable_reason(mlp(), replicas(6), 4),
              Optional(HasSubstr("with 4 MPI ranks, want 4 or a multiple of it")));
}

TEST(EngineMemory, CountsTheStatisticsOfBatchNormalization) {
  const auto bytes = [](std::vector<LayerSpec> layers) {
    return *engine_memory({{"", std::move(layers)}, {256, 1, 1}},
                          {.threads = 1, .batch_size = std::size_t{16} * 1000});
  };
  const LayerSpec flatten = test::flatten("flatten"), out = test::linear("out", 1);
  // 3 and 2 doubles.
  EXPECT_GT(bytes({test::norm("norm"), flatten, out}) - bytes({flatten, out}), std::size_t{1000} * 256 * 40)
      << "of each block and channel";
}

TEST(EngineMemory, CountsEveryThreadThatMayComputeAPart) {
  const auto bytes = [](int threads, std::size_t batch_size) {
    return *engine_memory(mlp(), {.threads = threads, .batch_size = batch_size});
  };
  EXPECT_EQ(bytes(16, 16), bytes(1, 16)) << "one block";
  EXPECT_GT(bytes(16, 32), bytes(8, 32)) << "any of the threads may compute one of the two";
}

TEST(EngineMemory, IsLessIfBatchesAreTrainedInParts) {
  const auto bytes = [](int parts) {
    return *engine_memory({test::small_residual(), {3, 8, 8}},
                          {.threads = 1, .batch_size = 1024, .accumulation_steps = parts});
  };
  EXPECT_LT(bytes(8), bytes(1) / 4);
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
        EXPECT_EQ(message_of<CommunicatorError>([&] { group.barrier(); }), "cpu:1: has not answered for 1 s");
        // The group stays broken.
        EXPECT_THROW(group.barrier(), CommunicatorError);
      },
      0.6);
}

TEST(ThreadGroup, NamesTheRankThatHasFailed) {
  on_all_ranks(3, [](Communicator& group) {
    if (group.rank() == 2) return group.abort("out of memory");
    EXPECT_EQ(message_of<CommunicatorError>([&] { group.barrier(); }), "cpu:2: out of memory");
    EXPECT_EQ(message_of<CommunicatorError>([&] { group.check(); }), "cpu:2: out of memory");
  });
}

// A rank that shows memory to the others may free it after an error.
TEST(ThreadGroup, FailsOnlyWhenNobodyCopiesAnyMore) {
  constexpr std::size_t kBytes = std::size_t{1} << 26;
  std::vector<std::byte> source(kBytes, std::byte{1}), copy(kBytes, std::byte{0});
  on_all_ranks(3, [&](Communicator& group) {
    if (group.rank() == 1) {
      std::this_thread::sleep_for(1ms);  // until rank 2 copies, which takes longer
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
  return {.threads = 3,
          .batch_size = 77,
          .optimizer = RmspropOptions{.alpha = 0.5, .centered = true},
          .transform = {{0.5F}, {0.25F}},
          .seed = 1234567890123,
          .loss = {.class_weights = {1, 2, 3}},
          .augment = {.steps = {{AugmentKind::kCutout, 4}}},
          .deterministic = false,
          .parallel = {.data = 4,
                       .model = {{"conv*", "cpu:1"}},
                       .pipeline = PipelineOptions{.stages = 2, .first_layers = {"fc"}, .micro_batches = 9}},
          .accumulation_steps = 6};
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
  std::vector<std::byte> message = encode_engine(mlp(), unusual_options());
  for (std::size_t size = 0; size < message.size(); size += 7)
    EXPECT_THROW(decode_engine(std::span(message).first(size)), DataError);
  message.push_back({});
  EXPECT_THROW(decode_engine(message), DataError);
}

TEST(Deadline, CountsASecondAtMostOfTheTimeInWhichTheProcessDidNotRun) {
  const std::vector<Deadline::Clock::duration> while_it_runs = {1s, 2s, 2900ms, 3s}, stopped = {1h, 2h, 3h};
  for (const auto& calls : {while_it_runs, stopped}) {
    const Deadline::Clock::time_point start{};
    Deadline deadline(3, start);
    for (const auto time : calls)
      EXPECT_EQ(deadline.is_over(start + time), time == calls.back()) << time / 1s;
  }
}

}  // namespace sweep::data_parallel_test
