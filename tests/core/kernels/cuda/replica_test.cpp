// Several stand-in devices that train one network: what only the stand-in can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cuda/group_exchange.h"
#include "core/parallel/group_engine.h"
#include "tests/cudart/machine.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/message_of.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::EngineOutcome;
using testing::HasSubstr;

EngineOptions options_of(int devices, int first = 0) {
  EngineOptions options{.device = {DeviceType::kCuda, first}, .batch_size = 40};
  options.optimizer = AdamOptions{};
  options.parallel.data = devices;
  return options;
}

EngineOutcome trained(const EngineOptions& options,
                      const Network& network = Network(test::deeplizard(), {1, 28, 28})) {
  constexpr std::size_t kSizes[] = {40, 40, 7, 40};
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch owned = test::random_batch(40, element_count(network.input()), 10, 11);
  test::train_steps(*engine, owned.view(), kSizes);
  return test::outcome_of(*engine, network, owned.view());
}

TEST(CudaReplica, GivesTheSameBitsWhenStreamsWorkAtRandomTimes) {
  const Network normalized(test::small_residual(), {3, 8, 8});
  EngineOptions in_turns = options_of(3);
  in_turns.accumulate = 2;
  const EngineOutcome late = trained(options_of(3)), late_in_turns = trained(in_turns, normalized);
  for (const std::uint64_t seed : {1, 2, 3}) {
    cuda::cudart::set_stream_seed(seed);
    EXPECT_TRUE(trained(options_of(3)) == late) << seed;
    EXPECT_TRUE(trained(in_turns, normalized) == late_in_turns) << seed;
  }
  cuda::cudart::set_stream_seed(0);
}

// Networks whose gradient is large enough for an exchange of its own behind each part; not the last one,
// whose parts wait for each other anyway.
struct Wide {
  NetworkSpec network;
  Shape input;
  int accumulate = 1;
};

std::vector<Wide> wide_networks() {
  const NetworkSpec mlp{
      "mlp",
      {test::flatten("flatten"), test::linear("fc", 1400), test::relu("relu"), test::linear("out", 10)}};
  NetworkSpec cnn = test::deeplizard(), normalized = mlp;
  std::get<std::int64_t>(cnn.layers[7].arguments["out_features"]) = 1100;
  const LayerSpec convolution = test::conv("conv", 4, 1);
  normalized.layers.insert(normalized.layers.begin(), {convolution, {"bn", "batch_norm2d"}});
  return {{mlp, {3, 8, 8}}, {mlp, {3, 8, 8}, 2}, {cnn, {1, 28, 28}}, {normalized, {3, 8, 8}, 2}};
}

EngineOptions options_of(const Wide& wide, int devices) {
  EngineOptions options = options_of(devices);
  options.accumulate = wide.accumulate;
  return options;
}

TEST(CudaReplica, GivesTheSameBitsForWideNetworks) {
  for (const Wide& wide : wide_networks()) {
    const Network network(wide.network, wide.input);
    const EngineOutcome late = trained(options_of(wide, 2), network);
    EXPECT_TRUE(trained(options_of(wide, 4), network) == late) << wide.network.name;
    for (const std::uint64_t seed : {0, 1, 2}) {
      cuda::cudart::set_stream_seed(seed);
      EXPECT_TRUE(trained(options_of(wide, 3), network) == late) << wide.network.name << ", seed " << seed;
    }
    cuda::cudart::set_stream_seed(0);
  }
}

// Bytes on all devices.
std::size_t memory_of(const EngineOptions& options, const Network& network) {
  const std::size_t before = cuda::cudart::memory_in_use();
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch batch =
      test::random_batch(options.batch_size, element_count(network.input()), 10, 11);
  engine->train(batch.view(), 0.01);
  std::vector<float> outputs(10 * options.batch_size);
  engine->evaluate_and_predict(batch.view(), outputs);
  return cuda::cudart::memory_in_use() - before;
}

// With small samples and few parameters, nearly all memory is that of activations and their gradients.
TEST(Accumulation, TakesTheMemoryOfOnePart) {
  const Network network(test::small_residual(8), {1, 8, 8});
  EngineOptions whole{.device = {DeviceType::kCuda, 0}, .batch_size = 256};
  EngineOptions part = whole, in_turns = whole;
  part.batch_size = 32;
  in_turns.accumulate = 8;
  EXPECT_GT(memory_of(whole, network), 5 * memory_of(part, network));
  EXPECT_LT(memory_of(in_turns, network), memory_of(part, network) * 5 / 4);
}

TEST(Accumulation, TakesLessMemoryOnEachDevice) {
  const Network network(test::small_residual(8), {1, 8, 8});
  EngineOptions whole{.device = {DeviceType::kCuda, 0}, .batch_size = 256};
  whole.parallel.data = 2;
  EngineOptions in_turns = whole;
  in_turns.accumulate = 8;
  EXPECT_GT(memory_of(whole, network), 4 * memory_of(in_turns, network));
}

TEST(CudaReplica, MayBeginWithAnotherDeviceThanTheFirst) {
  EXPECT_TRUE(trained(options_of(2, 2)) == trained(options_of(3, 1)));
}

std::string reason(const EngineOptions& options, const NetworkSpec& network = test::mlp(),
                   const Shape& input = {3, 8, 8}) {
  return test::message_of<DeviceError>([&] { make_engine(Network(network, input), options); });
}

TEST(CudaReplica, SaysWhatIsNotPossible) {
  EXPECT_THAT(reason(options_of(5, 4)), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  EXPECT_THAT(reason(options_of(2, 7)), HasSubstr("there is no cuda:8"));
  EXPECT_THAT(reason(options_of(9)), HasSubstr("at most 8 GPUs, or sets of them, can share a batch"));
}

// Where ranks are processes, each has one device, and this one need not see the others'.
TEST(CudaReplica, SaysWhatIsNotPossibleWithProcesses) {
  const Network network(test::mlp(), {3, 8, 8});
  EXPECT_EQ(group_unavailable_reason(network, options_of(8), 8), std::nullopt);
  EXPECT_EQ(group_unavailable_reason(network, options_of(2, 7), 2), std::nullopt);
  const auto reason_with = [&](const EngineOptions& options, int ranks) {
    return group_unavailable_reason(network, options, ranks).value_or("");
  };
  EXPECT_THAT(reason_with(options_of(4), 2), HasSubstr("with 2 MPI ranks, want 2, one GPU each"));
  EXPECT_THAT(reason_with(options_of(9), 9), HasSubstr("at most 8 GPUs"));
  EXPECT_THAT(reason_with(options_of(2, 8), 2), HasSubstr("there is no cuda:8"));
  EngineOptions stages = options_of(4);
  stages.parallel.model = {{"flatten", "cuda:6"}, {"out", "cuda:7"}};
  EXPECT_EQ(group_unavailable_reason(network, stages, 4), std::nullopt);
  EXPECT_THAT(reason_with(stages, 2),
              HasSubstr("with 2 MPI ranks, want 2, one GPU each, or one set of them"));
  stages.parallel.model[1].device = "cuda:8";
  EXPECT_THAT(reason_with(stages, 4), HasSubstr("there is no cuda:8"));
}

// A rank leaves NCCL's group when all others do; one that waits for them elsewhere would let them wait.
TEST(CudaReplica, LeaveTheirGroupTogether) {
  auto engine = make_engine(Network(test::mlp(), {3, 8, 8}), options_of(3));
  const auto begin = std::chrono::steady_clock::now();
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST(CudaReplica, OfADeviceThatHasTooLittleMemoryEndsAll) {
  const std::size_t before = cuda::cudart::memory_in_use();
  cuda::cudart::set_memory_limit(before + 2'000'000);
  EXPECT_THAT(reason(options_of(4), test::deeplizard(), {1, 28, 28}), HasSubstr("out of memory"));
  cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(cuda::cudart::memory_in_use(), before);
}

TEST(CudaReplica, FailsInTheMiddleOfATrainingWithTheReason) {
  const Network network(test::mlp(), {3, 8, 8});
  EngineOptions options = options_of(3);
  options.placement = Placement::kDevice;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch owned = test::random_batch(40, 192, 10, 11);
  engine->train(owned.view(), 0.01);
  const auto set = std::make_shared<const SampleSet>(SampleSet{{3, 8, 8}, owned.pixels, owned.labels});
  Batch resident{view(set->samples), view(set->targets), owned.rows, set};
  // Every device fails, one of them first.
  cuda::cudart::set_memory_limit(cuda::cudart::memory_in_use());
  const std::string problem = test::message_of<DeviceError>([&] {
    engine->train(resident, 0.01);
    engine->parameters();
  });
  cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_THAT(problem, HasSubstr("out of memory"));
}

}  // namespace
}  // namespace sweep
