// Stages on stand-in devices: what only the stand-in can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/engine/stages.h"
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
  EngineOptions options = {};
};

constexpr std::size_t kBatch = 11;

std::unique_ptr<Engine> engine_of(const Training& training, const ParallelOptions& parallel) {
  EngineOptions options = training.options;
  options.threads = 1;  // of the CPU
  options.batch_size = kBatch;
  options.seed = 7;
  options.parallel = parallel;
  return make_engine(Network(training.network, training.input), options);
}

void take_steps(Engine& engine, const Training& training) {
  constexpr std::size_t kSizes[] = {kBatch, 4, 1, kBatch};
  const test::OwnedBatch owned = test::random_batch(kBatch, element_count(training.input), 10, 11);
  test::train_steps(engine, owned.view(), kSizes);
}

EngineOutcome outcome_of(Engine& engine, const Training& training) {
  const test::OwnedBatch owned = test::random_batch(kBatch, element_count(training.input), 10, 12);
  return test::outcome_of(engine, Network(training.network, training.input), owned.view());
}

EngineOutcome train(const Training& training, const ParallelOptions& parallel) {
  const auto engine = engine_of(training, parallel);
  engine->set_parameters(initial_parameters(Network(training.network, training.input), 3));
  take_steps(*engine, training);
  return outcome_of(*engine, training);
}

EngineOptions on_cuda() {
  EngineOptions options{.device = {DeviceType::kCuda, 0}};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  return options;
}

ParallelOptions cut_before(std::vector<std::string> layers, int micro_batches,
                           PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward) {
  ParallelOptions options;
  options.pipeline = PipelineOptions{
      .stages = 0, .first_layers = std::move(layers), .micro_batches = micro_batches, .schedule = schedule};
  return options;
}

// A shortcut past two stages, one that begins at the input, and a network whose first layer has no
// parameters.
NetworkSpec long_shortcuts() {
  using test::conv, test::relu, test::flatten, test::linear;
  const auto same = [](std::string name) {
    LayerSpec spec = conv(std::move(name), 3, 3);
    spec.arguments["padding"] = std::int64_t{1};
    return spec;
  };
  LayerSpec first{"first", "residual"}, second{"second", "residual"};
  first.layers = {same("a"), {"tanh", "tanh"}, same("b"), {"norm", "batch_norm2d"}};
  second.layers = {same("c"), {"leaky", "leaky_relu"}, same("d"), relu("relu"), same("e")};
  return {"shortcuts",
          {first,
           second,
           {"dropout", "dropout", {{"p", 0.2}}},
           flatten("flatten"),
           linear("fc", 20),
           {"sigmoid", "sigmoid"},
           linear("out", 10)}};
}

TEST(StagedEngine, MayBeCutBeforeAnyLayer) {
  const std::vector<Training> trainings = {{test::deeplizard(), {1, 28, 28}, on_cuda()},
                                           {test::mlp(), {1, 9, 9}, on_cuda()},
                                           {long_shortcuts(), {3, 5, 6}, on_cuda()},
                                           {test::small_residual(), {3, 8, 8}, on_cuda()}};
  for (const Training& training : trainings) {
    const EngineOutcome one = train(training, {});
    const Network network(training.network, training.input);
    for (const Layer& layer : network.layers().subspan(1)) {
      if (layer.type == "residual") continue;  // has the name of the layers in it, too
      for (const int parts : {1, 3}) {
        SCOPED_TRACE(testing::Message() << layer.name << ", " << parts << " parts");
        EXPECT_TRUE(one == train(training, cut_before({layer.name}, parts)));
      }
    }
  }
}

TEST(StagedEngine, MayHaveAShortcutPastOtherStages) {
  const Training training{long_shortcuts(), {3, 5, 6}, on_cuda()};
  const EngineOutcome one = train(training, {});
  for (const int parts : {1, 2, 4}) {
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
      EXPECT_TRUE(one == train(training, cut_before({"first.b", "second.d", "second.e"}, parts, schedule)));
      EXPECT_TRUE(one == train(training, cut_before({"first.norm", "second.leaky", "out"}, parts, schedule)));
    }
  }
}

TEST(StagedEngine, HasTheLossesOfOneDevice) {
  Training weighted{test::deeplizard(), {1, 28, 28}, on_cuda()};
  weighted.options.loss.class_weights = {1, 2, 3, 4, 5, 0.5F, 1, 1, 2, 0};
  weighted.options.loss.label_smoothing = 0.1;
  Training without_head{{"n",
                         {test::conv("conv", 4, 3),
                          test::flatten("flatten"),
                          test::linear("fc", 10),
                          {"dropout", "dropout", {{"p", 0.1}}}}},
                        {1, 6, 6},
                        on_cuda()};
  without_head.options.optimizer = SgdOptions{.momentum = 0.9};
  without_head.options.clip_norm = 0;
  for (const Training& training : {weighted, without_head}) {
    const EngineOutcome one = train(training, {});
    for (const int parts : {1, 2, 5})
      EXPECT_TRUE(one == train(training, cut_before({training.network.layers[2].name}, parts))) << parts;
  }
}

// The weight gradients of layers that one kernel has on one device are sums of as many parts on several.
TEST(StagedEngine, AddsUpALargeBatchAsOneDevice) {
  constexpr std::size_t kSamples = 1700;
  const Network network({"wide",
                         {test::flatten("flatten"), test::linear("fc1", 120), test::relu("relu1"),
                          test::linear("fc2", 120), test::relu("relu2"), test::linear("out", 10)}},
                        {1, 4, 4});
  const test::OwnedBatch batch = test::random_batch(kSamples, 16, 10, 3);
  const auto gradients = [&](const ParallelOptions& parallel) {
    EngineOptions options = on_cuda();
    options.batch_size = kSamples;
    options.parallel = parallel;
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 3));
    engine->train(batch.view(), 0.01);
    return engine->gradients();
  };
  const std::vector<float> one = gradients({});
  EXPECT_EQ(gradients(cut_before({"out"}, 1)), one);
  EXPECT_EQ(gradients(cut_before({"fc2"}, 3)), one);
}

TEST(StagedEngine, DiffersFromTheCpuByRoundingOnly) {
  for (Training training : {Training{test::deeplizard(), {1, 28, 28}, on_cuda()},
                            Training{long_shortcuts(), {3, 5, 6}, on_cuda()}}) {
    const std::vector<std::string> cut = {training.network.name == "shortcuts" ? "second" : "conv2"};
    training.options.optimizer = SgdOptions{.momentum = 0.9};  // Adam makes much of rounding
    const EngineOutcome staged = train(training, cut_before(cut, 3));
    training.options.device = {};
    const EngineOutcome cpu = train(training, {});
    ASSERT_EQ(staged.outputs.size(), cpu.outputs.size());
    for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
      EXPECT_NEAR(staged.outputs[i], cpu.outputs[i], 1e-4) << i;
    EXPECT_NEAR(staged.trained.loss / cpu.trained.loss, 1, 1e-4);
    EXPECT_NEAR(staged.evaluated.loss / cpu.evaluated.loss, 1, 1e-4);
  }
}

TEST(StagedEngine, GivesTheSameBitsWhenStreamsWorkAtRandomTimes) {
  for (const Training& training : {Training{test::deeplizard(), {1, 28, 28}, on_cuda()},
                                   Training{long_shortcuts(), {3, 5, 6}, on_cuda()}}) {
    const std::string cut = training.network.name == "shortcuts" ? "second" : "conv2";
    for (const int parts : {1, 3}) {
      const ParallelOptions parallel = cut_before({cut, "out"}, parts);
      const EngineOutcome late = train(training, parallel);
      for (const std::uint64_t seed : {1, 2, 3, 4}) {
        cuda::cudart::set_stream_seed(seed);
        EXPECT_TRUE(train(training, parallel) == late) << seed;
      }
      cuda::cudart::set_stream_seed(0);
    }
  }
}

// A stage may be far ahead of the one that copies from it.
TEST(StagedEngine, KeepsABatchUntilTheNextStageHasIt) {
  const Training training{test::mlp(), {1, 7, 7}, on_cuda()};
  const auto evaluated = [&] {
    const auto engine = engine_of(training, cut_before({"out"}, 2));
    engine->set_parameters(initial_parameters(Network(training.network, training.input), 1));
    for (std::uint64_t batch = 0; batch < 40; ++batch)
      engine->evaluate(test::random_batch(kBatch, 49, 10, batch).view());
    return engine->take_totals().loss;
  };
  const double late = evaluated();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda::cudart::set_stream_seed(seed);
    EXPECT_EQ(evaluated(), late) << seed;
  }
  cuda::cudart::set_stream_seed(0);
}

TEST(StagedEngine, WorksWithLibraries) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "library");
  const Training training{test::small_residual(), {3, 8, 8}, on_cuda()};
  const auto one = engine_of(training, {}), two = engine_of(training, cut_before({"block2"}, 2));
  EXPECT_EQ(one->kernels(), two->kernels());
  EXPECT_EQ(one->kernels().front(), '{');
  EXPECT_TRUE(train(training, {}) == train(training, cut_before({"block2"}, 2)));
}

TEST(StagedEngine, GoesOnFromOneDeviceAndBackToIt) {
  const Training training{long_shortcuts(), {3, 5, 6}, on_cuda()};
  const Network network(training.network, training.input);
  const ParallelOptions one = {}, two = cut_before({"second"}, 2), three = cut_before({"first.b", "fc"}, 3);
  const auto go_on = [&](const std::vector<ParallelOptions>& way) {
    auto engine = engine_of(training, way[0]);
    engine->set_parameters(initial_parameters(network, 3));
    take_steps(*engine, training);
    for (const ParallelOptions& parallel : std::span(way).subspan(1)) {
      auto next = engine_of(training, parallel);
      test::hand_over(*engine, *next);
      engine = std::move(next);
      take_steps(*engine, training);
    }
    engine->take_totals();
    return outcome_of(*engine, training);
  };
  EXPECT_TRUE(go_on({two, one, three}) == go_on({one, one, one}));
}

TEST(StagedEngine, TrainsOnWholeSetsAsOnBatchesOfTheirOwn) {
  const Training training{test::mlp(), {1, 7, 7}, on_cuda()};
  const test::OwnedBatch owned = test::random_batch(50, 49, 10, 3);
  const auto set = std::make_shared<const SampleSet>(SampleSet{{1, 7, 7}, owned.pixels, owned.labels});
  const auto parameters = [&](Placement placement, bool named) {
    Training placed = training;
    placed.options.placement = placement;
    const auto engine = engine_of(placed, cut_before({"out"}, 2));
    engine->set_parameters(initial_parameters(Network(training.network, training.input), 1));
    DataLoader loader({set, 0, 50}, {.batch_size = kBatch, .shuffle = true, .seed = 5});
    loader.begin_epoch(0);
    while (const Batch* batch = loader.next()) {
      Batch copy = *batch;
      if (!named) copy.set = nullptr;
      engine->train(copy, 0.05);
    }
    return engine->parameters();
  };
  const std::vector<float> resident = parameters(Placement::kDevice, true);
  EXPECT_EQ(parameters(Placement::kHost, true), resident);
  EXPECT_EQ(parameters(Placement::kAuto, false), resident);
}

TEST(StagedEngine, SaysWhatIsNotPossible) {
  const auto reason = [](const ParallelOptions& parallel, int device = 0) {
    EngineOptions options{.device = {DeviceType::kCuda, device}};
    options.parallel = parallel;
    return test::message_of<DeviceError>([&] { make_engine(Network(test::mlp(), {1, 7, 7}), options); });
  };
  ParallelOptions parallel = cut_before({"out"}, 2);
  EXPECT_THAT(reason(parallel, 7), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  parallel.data = 5;
  EXPECT_THAT(reason(parallel), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices, numbered "
                                          "from 0; \"parallel.data\": 5 wants as many sets of devices as the "
                                          "layers are on, up to cuda:9"));
  parallel.data = 9;
  EXPECT_THAT(reason(parallel), HasSubstr("at most 8 GPUs, or sets of them, can share a batch"));
  ParallelOptions model;
  model.model = {{"*", "cpu:1"}};
  EXPECT_THAT(reason(model),
              HasSubstr("\"parallel.model\" has layers on cpu:1, want devices of the kind of cuda"));
  model.model = {{"*", "cuda:8"}};
  EXPECT_THAT(reason(model), HasSubstr("there is no cuda:8"));
}

TEST(StagedEngine, OfADeviceThatHasTooLittleMemoryLeavesNothingBehind) {
  const Training training{test::deeplizard(), {1, 28, 28}, on_cuda()};
  const std::size_t before = cuda::cudart::memory_in_use();
  cuda::cudart::set_memory_limit(before + 700'000);
  EXPECT_THAT(test::message_of<DeviceError>([&] { engine_of(training, cut_before({"fc1"}, 2)); }),
              HasSubstr("out of memory"));
  cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(cuda::cudart::memory_in_use(), before);
}

// Parameters are where their layers are, and nowhere else.
TEST(StagedEngine, HasEachLayersMemoryOnItsDeviceOnly) {
  const auto bytes = [](const ParallelOptions& parallel) {
    const std::size_t before = cuda::cudart::memory_in_use();
    const auto engine =
        engine_of({{"wide", {test::flatten("flatten"), test::linear("fc", 4000), test::linear("out", 10)}},
                   {1, 28, 28},
                   on_cuda()},
                  parallel);
    return cuda::cudart::memory_in_use() - before;
  };
  const auto one = static_cast<double>(bytes({})), two = static_cast<double>(bytes(cut_before({"out"}, 1)));
  EXPECT_NEAR(two / one, 1, 0.02);
}

}  // namespace
}  // namespace sweep
