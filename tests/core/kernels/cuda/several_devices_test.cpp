// Networks on several stand-in devices: streams that work late, memory, and what goes wrong.

#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/cudart/machine.h"
#include "tests/support/training.h"

namespace sweep::test::several_devices_test {

TEST(SeveralDevices, GiveTheSameBitsWhenStreamsWorkAtRandomTimes) {
  const Way staged{.stages = 3, .schedule = kEager}, in_micro_batches{.stages = 3, .micro_batches = 3},
      shared{.data = 3, .accumulate = 2}, all{.data = 2, .accumulate = 2, .stages = 3, .micro_batches = 8};
  for (const Training& training : {kCnn, kMlp, kResidual, kShortcuts}) {
    for (const Way& way : {staged, in_micro_batches, shared, all}) {
      const EngineOutcome late = train(training, way);
      for (const std::uint64_t seed : {1, 2}) {
        cuda::cudart::set_stream_seed(seed);
        EXPECT_TRUE(test::same_bits(train(training, way), late))
            << training.network.name << ", " << way << ", seed " << seed;
      }
      cuda::cudart::set_stream_seed(0);
    }
  }
}

// A stage may be far ahead of the one that copies from it.
TEST(SeveralDevices, KeepABatchUntilTheNextStageHasIt) {
  for (const Way& way : {Way{}, Way{.stages = 2, .micro_batches = 2}}) {
    Training training = kMlp;
    training.batches = {11};
    const auto trained = [&] {
      const auto engine = engine_of(training, way);
      for (std::uint64_t batch = 0; batch < 40; ++batch) {
        training.batches = {batch % 9 == 0 ? 3u : 11u};
        engine->train(batch_of(training, batch).view(), 0.1);
      }
      training.batches = {11};
      for (std::uint64_t batch = 0; batch < 40; ++batch) engine->evaluate(batch_of(training, batch).view());
      return std::pair(engine->take_totals().loss, engine->parameters());
    };
    const auto late = trained();
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      cuda::cudart::set_stream_seed(seed);
      EXPECT_EQ(trained(), late) << seed;
    }
    cuda::cudart::set_stream_seed(0);
  }
}

// So squares are added up in the same order wherever a network is cut.
TEST(Stages, HaveNoParametersOfTwoLayersInABlockOfSquares) {
  const EngineOptions options = options_of(kMlp, {.accumulate = 2});
  const auto count = [&](const cuda::StageLayers& stage) {
    cuda::ProgramOptions program = cuda::program_options(options, 0, {.turns = 2});
    program.stage = stage;
    cuda::Stream stream;
    return cuda::Program(stream, Network(test::mlp(), {1, 7, 7}), program).optimizer().square_count();
  };
  EXPECT_EQ(count({}),
            count({.first_layers = {0, 3}, .index = 0}) + count({.first_layers = {0, 3}, .index = 1}));
}

// Bytes on all devices that an engine takes. With small samples and few parameters, nearly all memory is that
// of activations and their gradients.
std::size_t memory_of(std::size_t batch_size, Way way, std::vector<LayerPlacement> model = {},
                      const Network& network = Network(test::small_residual(8), {1, 8, 8})) {
  way.model = std::move(model);
  const std::size_t before = cuda::cudart::memory_in_use();
  const Training training{network.spec(), network.input(), options_with(AdamOptions{}), {batch_size}};
  const auto engine = engine_of(training, way);
  take_steps(*engine, training);
  outcome_of(*engine, training);
  return cuda::cudart::memory_in_use() - before;
}

// Turns are what one has of them: activations, but not parameters. Parameters are where their layers are, and
// nowhere else.
TEST(SeveralDevices, TakeTheMemoryOfWhatTheyHave) {
  const Way turns{.accumulate = 8};
  EXPECT_GT(memory_of(128, {}), 5 * memory_of(16, {}));
  EXPECT_LT(memory_of(128, turns), memory_of(16, {}) * 5 / 4);
  EXPECT_GT(memory_of(256, {.data = 2}), 4 * memory_of(256, {.data = 2, .accumulate = 8}));
  const std::vector<LayerPlacement> two = {{"stem", "cuda:0"}, {"block2", "cuda:1"}};
  EXPECT_GT(memory_of(256, {}, two), 4 * memory_of(256, turns, two));
  EXPECT_GT(memory_of(256, {.data = 2}, two), 3 * memory_of(256, {.data = 2, .accumulate = 8}, two));
  const Network wide({"wide", {test::flatten("flatten"), test::linear("fc", 4000), test::linear("out", 10)}},
                     {1, 28, 28});
  const auto one = static_cast<double>(memory_of(11, {}, {}, wide)),
             split = static_cast<double>(memory_of(11, {}, {{"flatten", "cuda:0"}, {"out", "cuda:1"}}, wide));
  EXPECT_NEAR(split / one, 1, 0.02);
}

TEST(SeveralDevices, LeaveNothingBehindIfThereIsTooLittleMemory) {
  Training training = kCnn;
  training.input = {1, 28, 28};
  training.batches = {11};
  const std::size_t before = cuda::cudart::memory_in_use();
  const struct {
    std::size_t bytes;
    Way way;
    const char* purpose = "";
  } cases[] = {{50'000, {}, "of a batch of 11"},
               {700'000, {.stages = 2}},
               {2'000'000, {.data = 4}},
               {2'000'000, {.data = 3, .stages = 2}}};
  for (const auto& [bytes, way, purpose] : cases) {
    EXPECT_THAT(test::message_of<DeviceError>([&, more = bytes, &w = way] {
                  const cuda::cudart::MemoryLimit limit(more);
                  engine_of(training, w);
                }),
                AllOf(HasSubstr("out of memory"), HasSubstr(purpose)));
    EXPECT_EQ(cuda::cudart::memory_in_use(), before);
    EXPECT_NE(engine_of(training, way), nullptr);
  }
}

TEST(SeveralDevices, FailInTheMiddleOfATrainingWithTheReason) {
  for (const Way& way : {Way{.data = 3}, Way{.data = 2, .stages = 2}}) {
    Training training = kMlp;
    training.options.placement = Placement::kDevice;
    const auto engine = engine_of(training, way);
    const test::OwnedBatch owned = batch_of(training);
    engine->train(owned.view(), 0.01);
    const auto set =
        std::make_shared<const TensorDataset>(TensorDataset{{1, 7, 7}, owned.pixels, owned.labels});
    const Batch resident{view(set->samples), view(set->targets), owned.indices, set};
    // Every device fails, one of them first.
    EXPECT_THAT(test::message_of<DeviceError>([&] {
                  const cuda::cudart::MemoryLimit no_more(0);
                  engine->train(resident, 0.01);
                  engine->parameters();
                }),
                HasSubstr("out of memory"));
  }
}

// One of them, while the others wait for it in an exchange: whichever call fails, and whichever device.
TEST(SeveralDevices, TellWhatHasFailedAsSoonAsOneHas) {
  for (const std::string function : {"cudaEventRecord", "cudaMemcpyAsync", "cudaLaunchKernel"}) {
    for (const int calls_before : {0, 1, 2, 5, 8, 13, 21}) {
      auto engine = engine_of(kMlp, {.data = 2});
      const test::OwnedBatch batch = batch_of(kMlp);
      engine->train(batch.view(), 0.01);
      const auto begin = std::chrono::steady_clock::now();
      cuda::cudart::fail(function, cuda::cudart::CallError::kOperatingSystem, calls_before);
      EXPECT_THAT(test::message_of<DeviceError>([&] {
                    for (int step = 0; step < 20; ++step) engine->train(batch.view(), 0.01);
                    engine->parameters();
                  }),
                  HasSubstr("(cudaErrorOperatingSystem)"))
          << function << " after " << calls_before;
      engine.reset();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << function;
    }
  }
}

class LateCommunicator final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void barrier() override {
    ForwardingCommunicator::barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
};

// An allocation may wait for the exchange of another device, which waits for this one.
TEST(SeveralDevices, AllocateNothingWhenOneMayBeAheadInAnExchange) {
  Training training = kMlp;
  training.options.placement = Placement::kHost;
  const auto ends = make_thread_group(2);
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      LateCommunicator late(*ends[0]);
      Communicator& group = rank == 0 ? late : *ends[1];
      const auto engine = make_cuda_replica(network_of(training), options_of(training, {.data = 2}), group);
      engine->train(batch_of(training).view(), 0.01);
      engine->parameters();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(cuda::cudart::mistakes(), IsEmpty());
}

// The copies may come after an exchange, which only the group can wait for without waiting for ever.
TEST(SeveralDevices, WaitByTheirGroupBeforeTheHostOverwritesWhatIsCopied) {
  const test::OwnedBatch batch = batch_of(kMlp);
  cuda::Stream stream;
  cuda::BatchFeed feed(batch.labels.size(), element_count(kMlp.input), Placement::kHost, false);
  int waits = 0;
  feed.wait_by([&](const cuda::Event& event) {
    ++waits;
    event.wait();
  });
  const int calls = cuda::cudart::calls("cudaEventSynchronize");
  for (int step = 0; step < 3; ++step) {
    feed.add(stream, batch.view(), {});
    feed.upload(stream);
  }
  EXPECT_EQ(waits, 6) << "for row numbers and for samples";
  EXPECT_EQ(cuda::cudart::calls("cudaEventSynchronize") - calls, waits);
}

// A group of one, as if it were a process.
class LonelyProcess final : public ForwardingCommunicator {
 public:
  LonelyProcess() : LonelyProcess(make_thread_group(1)) {}
  bool shares_memory() const override { return false; }
  void all_gather(std::span<const SharedArray> arrays) override {
    ++gathered_;
    ForwardingCommunicator::all_gather(arrays);
  }
  int take_gathered() { return std::exchange(gathered_, 0); }

 private:
  explicit LonelyProcess(std::vector<std::unique_ptr<Communicator>> ends)
      : ForwardingCommunicator(*ends.front()), ends_(std::move(ends)) {}

  std::vector<std::unique_ptr<Communicator>> ends_;
  int gathered_ = 0;
};

// So rank 0, which alone may copy a set to its device, is waited for by the group and not by a device.
TEST(SeveralDevices, OfProcessesPrepareTogetherForABatchSize) {
  LonelyProcess group;
  const auto engine = make_cuda_replica(network_of(kMlp), options_of(kMlp, {.data = 2}), group);
  Training training = kMlp;
  for (const std::size_t size : {11, 3}) {
    training.batches = {size};
    group.take_gathered();
    engine->train(batch_of(training).view(), 0.01);
    EXPECT_EQ(group.take_gathered(), 1);
    engine->train(batch_of(training).view(), 0.01);
    EXPECT_EQ(group.take_gathered(), 0);
  }
}

TEST(SeveralDevices, OfProcessesAllFailIfOneHasTooLittleMemory) {
  LonelyProcess group;
  const auto make = [&] { return make_cuda_replica(network_of(kMlp), options_of(kMlp, {.data = 2}), group); };
  const auto problem_of = [](std::size_t more, const auto& work) {
    return test::message_of<ReplicaError>([&] {
      const cuda::cudart::MemoryLimit limit(more);
      work();
    });
  };
  EXPECT_THAT(problem_of(50'000, make), StartsWith("rank 0: cuda: out of memory"));
  const auto engine = make();
  EXPECT_THAT(problem_of(0, [&] { engine->train(batch_of(kMlp).view(), 0.01); }),
              StartsWith("rank 0: cuda: out of memory"));
}

// A rank leaves NCCL's group when all others do; one that waits for them elsewhere would let them wait.
TEST(SeveralDevices, LeaveTheirGroupTogether) {
  auto engine = engine_of(kMlp, {.data = 3});
  const auto begin = std::chrono::steady_clock::now();
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

EngineOptions on_devices(int devices, int first = 0) {
  return {.device = {DeviceType::kCuda, first}, .parallel = {.data = devices}};
}

TEST(SeveralDevices, SayWhatIsNotPossible) {
  const auto reason = [](const EngineOptions& options) {
    return test::message_of<DeviceError>([&] { make_engine(Network(test::mlp(), {1, 7, 7}), options); });
  };
  EXPECT_THAT(reason(on_devices(5, 4)), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  EXPECT_THAT(reason(on_devices(9)), HasSubstr("at most 8 GPUs, or sets of them, can share a batch"));
  EngineOptions staged = on_devices(1, 7);
  staged.parallel.pipeline = PipelineOptions{.stages = 0, .first_layers = {"out"}, .micro_batches = 2};
  EXPECT_THAT(reason(staged), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  staged.device.index = 0;
  staged.parallel.data = 5;
  EXPECT_THAT(reason(staged), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices, numbered "
                                        "from 0; \"parallel.data\": 5 wants as many sets of devices as the "
                                        "layers are on, up to cuda:9"));
  EngineOptions placed = on_devices(1);
  placed.parallel.model = {{"*", "cpu:1"}};
  EXPECT_THAT(reason(placed),
              HasSubstr("\"parallel.model\" has layers on cpu:1, want devices of the kind of cuda"));
  placed.parallel.model = {{"*", "cuda:8"}};
  EXPECT_THAT(reason(placed), HasSubstr("there is no cuda:8"));
}

// Where ranks are processes, each has one device, and this one need not see the others'.
TEST(SeveralDevices, SayWhatIsNotPossibleWithProcesses) {
  const auto reason = [](const EngineOptions& options, int ranks) {
    return group_unavailable_reason(Network(test::mlp(), {3, 8, 8}), options, ranks).value_or("");
  };
  EXPECT_EQ(reason(on_devices(8), 8), "");
  EXPECT_EQ(reason(on_devices(2, 7), 2), "");
  EXPECT_THAT(reason(on_devices(4), 2), HasSubstr("with 2 MPI ranks, want 2, one GPU each"));
  EXPECT_THAT(reason(on_devices(9), 9), HasSubstr("at most 8 GPUs"));
  EXPECT_THAT(reason(on_devices(2, 8), 2), HasSubstr("there is no cuda:8"));
  EngineOptions stages = on_devices(4);
  stages.parallel.model = {{"flatten", "cuda:6"}, {"out", "cuda:7"}};
  EXPECT_EQ(reason(stages, 4), "");
  EXPECT_THAT(reason(stages, 2), HasSubstr("with 2 MPI ranks, want 2, one GPU each, or one set of them"));
  stages.parallel.model[1].device = "cuda:8";
  EXPECT_THAT(reason(stages, 4), HasSubstr("there is no cuda:8"));
}

}  // namespace sweep::test::several_devices_test
