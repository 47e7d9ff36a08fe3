// Stages on stand-in devices together with turns, and with sets of devices that share each batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/device_runner.h"
#include "tests/cudart/machine.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/environment.h"
#include "tests/support/message_of.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::EngineOutcome;
using testing::HasSubstr;

struct Training {
  NetworkSpec network;
  Shape input;
  std::vector<std::string> cuts;  // layers that stages begin with
  OptimizerOptions optimizer = AdamOptions{};
};

// Fused convolutions and a head that is cut; a shortcut past the cut.
std::vector<Training> trainings() {
  return {{test::deeplizard(), {1, 28, 28}, {"conv2", "fc2"}},
          {test::with_dropout(test::mlp()), {1, 7, 7}, {"fc1", "out"}, SgdOptions{.momentum = 0.9}},
          {test::with_dropout(test::small_residual()), {3, 8, 8}, {"block1.conv2", "block2.bn2"}}};
}

constexpr std::size_t kBatch = 26;
// Whole batches, and some of fewer samples than there are parts and turns.
constexpr std::size_t kSizes[] = {kBatch, 13, 3, kBatch, 1};

struct Way {
  int data = 1, stages = 1, micro_batches = 1, accumulate = 1;
  PipelineSchedule schedule = PipelineSchedule::kGpipe;
};

std::string text(const Way& way) {
  return std::to_string(way.data) + " sets of " + std::to_string(way.stages) + ", " +
         std::to_string(way.micro_batches) + " micro-batches, " + std::to_string(way.accumulate) +
         " turns, " + pipeline_schedule_name(way.schedule);
}

std::unique_ptr<Engine> engine_of(const Training& training, const Way& way,
                                  Placement placement = Placement::kAuto) {
  EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = kBatch};
  options.optimizer = training.optimizer;
  options.clip_norm = 0.5;
  options.seed = 7;
  options.placement = placement;
  options.accumulate = way.accumulate;
  options.parallel.data = way.data;
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  if (way.stages > 1) {
    options.parallel.pipeline =
        PipelineOptions{.stages = 0,
                        .first_layers = {training.cuts.end() - (way.stages - 1), training.cuts.end()},
                        .micro_batches = way.micro_batches,
                        .schedule = way.schedule};
  }
  auto engine = make_engine(Network(training.network, training.input), options);
  engine->set_parameters(initial_parameters(Network(training.network, training.input), 3));
  return engine;
}

test::OwnedBatch batch_of(const Training& training, std::uint64_t seed = 11) {
  return test::random_batch(kBatch, element_count(training.input), 10, seed);
}

EngineOutcome outcome(const Training& training, Engine& engine) {
  return test::outcome_of(engine, Network(training.network, training.input), batch_of(training, 12).view());
}

EngineOutcome train(const Training& training, const Way& way) {
  const auto engine = engine_of(training, way);
  test::train_steps(*engine, batch_of(training).view(), kSizes);
  return outcome(training, *engine);
}

void expect_the_bits_of(const Way& expected, const std::vector<Way>& ways) {
  for (const Training& training : trainings()) {
    const EngineOutcome one = train(training, expected);
    EXPECT_EQ(one.trained.samples, 69);
    for (const Way& way : ways)
      EXPECT_TRUE(one == train(training, way)) << training.network.name << ", " << text(way);
  }
}

constexpr PipelineSchedule kEager = PipelineSchedule::kOneForwardOneBackward;

TEST(StagesInTurns, HaveTheBitsOfOneDeviceInTurns) {
  expect_the_bits_of({.accumulate = 2},
                     {{.stages = 2, .accumulate = 2},
                      {.stages = 3, .micro_batches = 3, .accumulate = 2},
                      {.stages = 2, .micro_batches = 2, .accumulate = 2, .schedule = kEager}});
  expect_the_bits_of({.accumulate = 5},
                     {{.stages = 3, .accumulate = 5},
                      {.stages = 3, .micro_batches = 4, .accumulate = 5, .schedule = kEager}});
}

// So squares are added up in the same order wherever a network is cut.
TEST(StagesInTurns, HaveNoParametersOfTwoLayersInABlockOfSquares) {
  const Network network(test::mlp(), {1, 7, 7});
  EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = kBatch};
  options.clip_norm = 1;
  options.accumulate = 2;
  const auto count = [&](const cuda::StageLayers& stage) {
    cuda::ProgramOptions program = cuda::program_options(options, 0, {.turns = 2});
    program.stage = stage;
    cuda::Stream stream;
    return cuda::Program(stream, network, program).optimizer().square_count();
  };
  EXPECT_EQ(count({}),
            count({.first_layers = {0, 3}, .index = 0}) + count({.first_layers = {0, 3}, .index = 1}));
}

// With and without micro-batches: parts of a batch one by one, or all under way at once, or in pieces.
TEST(StagedReplica, HasTheBitsOfReplicasWithoutStages) {
  expect_the_bits_of({.data = 2}, {{.data = 2, .stages = 2},
                                   {.data = 2, .stages = 3, .micro_batches = 4},
                                   {.data = 2, .stages = 2, .micro_batches = 9, .schedule = kEager},
                                   {.data = 4, .stages = 2, .micro_batches = 2, .schedule = kEager}});
}

TEST(StagedReplica, HasTheBitsOfReplicasWithoutStagesInTurns) {
  expect_the_bits_of({.data = 3, .accumulate = 2},
                     {{.data = 2, .stages = 3, .accumulate = 2},
                      {.data = 4, .stages = 2, .micro_batches = 3, .accumulate = 2, .schedule = kEager}});
}

TEST(StagedReplica, GoesOnWithAnotherNumberOfSetsAndStages) {
  for (const Training& training : trainings()) {
    const test::OwnedBatch batch = batch_of(training);
    const auto go_on = [&](const std::vector<Way>& ways) {
      auto engine = engine_of(training, ways[0]);
      test::train_steps(*engine, batch.view(), kSizes);
      for (const Way& way : std::span(ways).subspan(1)) {
        auto next = engine_of(training, way);
        test::hand_over(*engine, *next);
        engine = std::move(next);
        test::train_steps(*engine, batch.view(), kSizes);
      }
      engine->take_totals();
      return outcome(training, *engine);
    };
    const EngineOutcome one = go_on({{.data = 2}, {.data = 2}, {.data = 2}});
    EXPECT_TRUE(one == go_on({{.data = 4, .stages = 2, .micro_batches = 2},
                              {.data = 2, .stages = 3, .schedule = kEager},
                              {.data = 3}}))
        << training.network.name;
    const EngineOutcome turns = go_on({{.accumulate = 3}, {.accumulate = 3}});
    EXPECT_TRUE(turns == go_on({{.stages = 3, .accumulate = 3}, {.stages = 2, .accumulate = 3}}))
        << training.network.name;
  }
}

TEST(StagedReplica, GivesTheSameBitsWhenStreamsWorkAtRandomTimes) {
  const std::vector<Way> ways = {{.data = 2, .stages = 3, .micro_batches = 8, .accumulate = 2},
                                 {.data = 3, .stages = 2, .accumulate = 2}};
  for (const Training& training : trainings()) {
    const EngineOutcome late = train(training, {.data = 2, .accumulate = 2});
    for (const std::uint64_t seed : {1, 2, 3}) {
      cuda::cudart::set_stream_seed(seed);
      for (const Way& way : ways)
        EXPECT_TRUE(train(training, way) == late) << training.network.name << ", seed " << seed;
    }
    cuda::cudart::set_stream_seed(0);
  }
}

// Stages of one device have one group of NCCL.
TEST(StagedReplica, MayHaveSeveralStagesOnADevice) {
  const Training training = trainings().back();
  const Network network(training.network, training.input);
  const auto trained = [&](std::vector<LayerPlacement> model) {
    EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = kBatch};
    options.parallel.data = 2;
    options.parallel.model = std::move(model);
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 3));
    test::train_steps(*engine, batch_of(training).view(), kSizes);
    return outcome(training, *engine);
  };
  const EngineOutcome one = trained({});
  EXPECT_TRUE(one == trained({{"stem", "cuda:2"}, {"block1", "cuda:0"}, {"block2", "cuda:2"}}));
  EXPECT_TRUE(one == trained({{"stem", "cuda:1"}, {"block2.bn1", "cuda:0"}, {"out", "cuda:1"}}));
  EXPECT_TRUE(one == trained({{"stem", "cuda:5"}}));
}

TEST(StagedReplica, WorksWithLibraries) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "library");
  const Training training = trainings().back();
  EXPECT_EQ(engine_of(training, {.data = 2, .stages = 2})->kernels(),
            engine_of(training, {.data = 2})->kernels());
  EXPECT_TRUE(train(training, {.data = 2}) == train(training, {.data = 2, .stages = 2}));
  EXPECT_TRUE(train(training, {.accumulate = 2}) == train(training, {.stages = 2, .accumulate = 2}));
}

TEST(StagedReplica, TrainsOnWholeSetsAsOnBatchesOfTheirOwn) {
  const Training training = trainings()[1];
  const auto set_of = [](std::size_t images, std::uint64_t seed) {
    const test::OwnedBatch batch = test::random_batch(images, 49, 10, seed);
    return std::make_shared<const SampleSet>(SampleSet{{1, 7, 7}, batch.pixels, batch.labels});
  };
  const auto set = set_of(70, 3);
  const auto parameters = [&](Placement placement, bool named) {
    const auto engine = engine_of(training, {.data = 2, .stages = 2, .accumulate = 2}, placement);
    DataLoader loader({set, 0, 70}, {.batch_size = kBatch, .shuffle = true, .seed = 5});
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch(epoch);
      while (const Batch* batch = loader.next()) {
        Batch copy = *batch;
        if (!named) copy.set = nullptr;
        engine->train(copy, 0.05);
      }
      // Evaluations of other sets may take the place of the trained one on the first set of devices.
      for (std::uint64_t other = 0; other < 4; ++other) {
        DataLoader evaluated({set_of(30, 20 + other), 0, 30}, {.batch_size = kBatch});
        evaluated.begin_epoch(0);
        while (const Batch* batch = evaluated.next()) engine->evaluate(*batch);
      }
      EXPECT_EQ(engine->take_totals().samples, 70 + 4 * 30);
    }
    return engine->parameters();
  };
  const std::vector<float> resident = parameters(Placement::kDevice, true);
  EXPECT_EQ(parameters(Placement::kHost, true), resident);
  EXPECT_EQ(parameters(Placement::kAuto, false), resident);
}

TEST(StagedReplica, TellsHowLongItsDevicesExchanged) {
  const Training training = trainings().back();
  const auto engine = engine_of(training, {.data = 2, .stages = 2});
  EXPECT_EQ(engine->take_communication_seconds(), 0.0) << "nothing was asked for";
  test::train_steps(*engine, batch_of(training).view(), kSizes);
  EXPECT_GT(engine->take_communication_seconds(), 0.0);
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
}

// Turns are what one has of them: activations, but not parameters.
TEST(StagedReplica, TakesTheMemoryOfAPart) {
  const auto bytes = [](const Way& way) {
    const std::size_t before = cuda::cudart::memory_in_use();
    Training training{test::small_residual(8), {1, 8, 8}, {"block2"}};
    EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = 512};
    options.accumulate = way.accumulate;
    options.parallel.data = way.data;
    options.parallel.model = {{"stem", "cuda:0"}, {"block2", "cuda:1"}};
    const auto engine = make_engine(Network(training.network, training.input), options);
    return cuda::cudart::memory_in_use() - before;
  };
  EXPECT_GT(bytes({}), 4 * bytes({.accumulate = 8}));
  EXPECT_GT(bytes({.data = 2}), 3 * bytes({.data = 2, .accumulate = 8}));
}

TEST(StagedReplica, OfADeviceThatHasTooLittleMemoryLeavesNothingBehind) {
  const std::size_t before = cuda::cudart::memory_in_use();
  cuda::cudart::set_memory_limit(before + 2'000'000);
  EXPECT_THAT(test::message_of<DeviceError>([&] { engine_of(trainings()[0], {.data = 3, .stages = 2}); }),
              HasSubstr("out of memory"));
  cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(cuda::cudart::memory_in_use(), before);
}

TEST(StagedReplica, FailsInTheMiddleOfATrainingWithTheReason) {
  const Training training = trainings()[1];
  const auto engine = engine_of(training, {.data = 2, .stages = 2}, Placement::kDevice);
  const test::OwnedBatch owned = batch_of(training);
  engine->train(owned.view(), 0.01);
  const auto set = std::make_shared<const SampleSet>(SampleSet{{1, 7, 7}, owned.pixels, owned.labels});
  const Batch resident{view(set->samples), view(set->targets), owned.rows, set};
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
