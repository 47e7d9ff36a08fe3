// Networks on several stand-in devices, which have the layers or the samples of a batch between them, or
// both, and trainings in turns: what only the stand-in can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/parallel/group_engine.h"
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

EngineOptions default_options() {
  EngineOptions options{.device = {DeviceType::kCuda, 0}};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.seed = 7;
  options.threads = 1;  // of the CPU
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  return options;
}

struct Training {
  NetworkSpec network;
  Shape input;
  std::vector<std::string> cuts = {};  // layers that stages begin with
  EngineOptions options = default_options();
};

// How a network is trained. stages: that begin with the last ones of Training::cuts.
struct Way {
  int data = 1, accumulate = 1, stages = 1, micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::kGpipe;
};
constexpr PipelineSchedule kEager = PipelineSchedule::kOneForwardOneBackward;

std::string text(const Training& training, const Way& way) {
  return training.network.name + ": " + std::to_string(way.data) + " sets of " + std::to_string(way.stages) +
         ", " + std::to_string(way.micro_batches) + " micro-batches, " + std::to_string(way.accumulate) +
         " turns, " + pipeline_schedule_name(way.schedule);
}

Training cut_before(Training training, std::vector<std::string> cuts) {
  training.cuts = std::move(cuts);
  return training;
}

Network network_of(const Training& training) { return {training.network, training.input}; }

// Batches of which some have fewer samples than there are parts and turns.
std::vector<std::size_t> sizes_of(const Way& way) {
  if (way.data * way.accumulate == 1) return {11, 4, 1, 11};
  return {26, 13, 3, 26, 1};
}

std::unique_ptr<Engine> engine_of(const Training& training, const Way& way) {
  EngineOptions options = training.options;
  options.batch_size = sizes_of(way)[0];
  options.accumulate = way.accumulate;
  options.parallel.data = way.data;
  if (way.stages > 1) {
    options.parallel.pipeline =
        PipelineOptions{.stages = 0,
                        .first_layers = {training.cuts.end() - (way.stages - 1), training.cuts.end()},
                        .micro_batches = way.micro_batches,
                        .schedule = way.schedule};
  }
  auto engine = make_engine(network_of(training), options);
  engine->set_parameters(initial_parameters(network_of(training), 3));
  return engine;
}

test::OwnedBatch batch_of(const Training& training, std::size_t samples, std::uint64_t seed = 11) {
  return test::random_batch(samples, element_count(training.input), 10, seed);
}

void take_steps(Engine& engine, const Training& training, const Way& way) {
  const std::vector<std::size_t> sizes = sizes_of(way);
  test::train_steps(engine, batch_of(training, sizes[0]).view(), sizes);
}

EngineOutcome outcome_of(Engine& engine, const Training& training, const Way& way) {
  return test::outcome_of(engine, network_of(training), batch_of(training, sizes_of(way)[0], 12).view());
}

EngineOutcome train(const Training& training, const Way& way) {
  const auto engine = engine_of(training, way);
  take_steps(*engine, training, way);
  return outcome_of(*engine, training, way);
}

void expect_the_bits_of(const Way& expected, const std::vector<Way>& ways,
                        const std::vector<Training>& trainings) {
  for (const Training& training : trainings) {
    const EngineOutcome one = train(training, expected);
    for (const Way& way : ways) EXPECT_TRUE(one == train(training, way)) << text(training, way);
  }
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

// Fused convolutions and a head that is cut; momentum and dropout; a shortcut past the cut; batch
// normalization.
const Training kCnn{test::deeplizard(), {1, 28, 28}, {"conv2", "fc2"}};
Training mlp() {
  Training training{test::with_dropout(test::mlp()), {1, 7, 7}, {"fc1", "out"}};
  training.options.optimizer = SgdOptions{.momentum = 0.9};
  return training;
}
const Training kResidual{
    test::with_dropout(test::small_residual()), {3, 8, 8}, {"block1.conv2", "block2.bn2"}};
const Training kShortcuts{long_shortcuts(), {3, 5, 6}, {"second", "out"}};
std::vector<Training> trainings() { return {kCnn, mlp(), kResidual}; }

TEST(Stages, MayBeginWithAnyLayer) {
  for (const Training& training :
       {kCnn, Training{test::mlp(), {1, 9, 9}}, kShortcuts, Training{test::small_residual(), {3, 8, 8}}}) {
    const EngineOutcome one = train(training, {});
    const Network network = network_of(training);
    for (const Layer& layer : network.layers().subspan(1)) {
      if (layer.type == "residual") continue;  // has the name of the layers in it, too
      for (const int parts : {1, 3}) {
        const Way way{.stages = 2, .micro_batches = parts, .schedule = kEager};
        EXPECT_TRUE(one == train(cut_before(training, {layer.name}), way))
            << layer.name << text(training, way);
      }
    }
  }
}

TEST(Stages, MayHaveAShortcutPastOtherStages) {
  std::vector<Way> ways;
  for (const int parts : {1, 2, 4}) {
    for (const auto schedule : {PipelineSchedule::kGpipe, kEager})
      ways.push_back({.stages = 4, .micro_batches = parts, .schedule = schedule});
  }
  expect_the_bits_of({}, ways,
                     {cut_before(kShortcuts, {"first.b", "second.d", "second.e"}),
                      cut_before(kShortcuts, {"first.norm", "second.leaky", "out"})});
}

TEST(Stages, HaveTheLossesOfOneDevice) {
  Training smoothed = cut_before(kCnn, {"pool1"});
  smoothed.options.loss.label_smoothing = 0.1;
  Training without_head{{"n",
                         {test::conv("conv", 4, 3),
                          test::flatten("flatten"),
                          test::linear("fc", 10),
                          {"dropout", "dropout", {{"p", 0.1}}}}},
                        {1, 6, 6},
                        {"fc"}};
  without_head.options.optimizer = SgdOptions{.momentum = 0.9};
  without_head.options.clip_norm = 0;
  std::vector<Way> ways;
  for (const int parts : {1, 2, 5}) ways.push_back({.stages = 2, .micro_batches = parts, .schedule = kEager});
  expect_the_bits_of({}, ways, {smoothed, without_head});
}

// The weight gradients of layers that one kernel has on one device are sums of as many parts on several.
TEST(Stages, AddUpALargeBatchAsOneDevice) {
  constexpr std::size_t kSamples = 1700;
  const Network network({"wide",
                         {test::flatten("flatten"), test::linear("fc1", 120), test::relu("relu1"),
                          test::linear("fc2", 120), test::relu("relu2"), test::linear("out", 10)}},
                        {1, 4, 4});
  const test::OwnedBatch batch = test::random_batch(kSamples, 16, 10, 3);
  const auto gradients = [&](std::vector<std::string> cuts, int micro_batches) {
    EngineOptions options = default_options();
    options.batch_size = kSamples;
    if (!cuts.empty())
      options.parallel.pipeline =
          PipelineOptions{.stages = 0, .first_layers = std::move(cuts), .micro_batches = micro_batches};
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 3));
    engine->train(batch.view(), 0.01);
    return engine->gradients();
  };
  const std::vector<float> one = gradients({}, 1);
  EXPECT_EQ(gradients({"out"}, 1), one);
  EXPECT_EQ(gradients({"fc2"}, 3), one);
}

TEST(Stages, DifferFromTheCpuByRoundingOnly) {
  for (Training training : {kCnn, kShortcuts}) {
    training.options.optimizer = SgdOptions{.momentum = 0.9};  // Adam makes much of rounding
    const EngineOutcome staged = train(training, {.stages = 2, .micro_batches = 3});
    training.options.device = {};
    const EngineOutcome cpu = train(training, {});
    ASSERT_EQ(staged.outputs.size(), cpu.outputs.size());
    for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
      EXPECT_NEAR(staged.outputs[i], cpu.outputs[i], 1e-4) << i;
    EXPECT_NEAR(staged.trained.loss / cpu.trained.loss, 1, 1e-4);
    EXPECT_NEAR(staged.evaluated.loss / cpu.evaluated.loss, 1, 1e-4);
  }
}

TEST(Stages, HaveTheBitsOfOneDeviceInTurns) {
  expect_the_bits_of({.accumulate = 2},
                     {{.accumulate = 2, .stages = 2},
                      {.accumulate = 2, .stages = 3, .micro_batches = 3},
                      {.accumulate = 2, .stages = 2, .micro_batches = 2, .schedule = kEager}},
                     trainings());
  expect_the_bits_of({.accumulate = 5},
                     {{.accumulate = 5, .stages = 3},
                      {.accumulate = 5, .stages = 3, .micro_batches = 4, .schedule = kEager}},
                     trainings());
}

// So squares are added up in the same order wherever a network is cut.
TEST(Stages, HaveNoParametersOfTwoLayersInABlockOfSquares) {
  EngineOptions options = default_options();
  options.batch_size = 26;
  options.accumulate = 2;
  const auto count = [&](const cuda::StageLayers& stage) {
    cuda::ProgramOptions program = cuda::program_options(options, 0, {.turns = 2});
    program.stage = stage;
    cuda::Stream stream;
    return cuda::Program(stream, Network(test::mlp(), {1, 7, 7}), program).optimizer().square_count();
  };
  EXPECT_EQ(count({}),
            count({.first_layers = {0, 3}, .index = 0}) + count({.first_layers = {0, 3}, .index = 1}));
}

// With and without micro-batches: parts of a batch one by one, or all under way at once, or in pieces.
TEST(Replicas, HaveTheSameBitsWithStages) {
  expect_the_bits_of({.data = 2},
                     {{.data = 2, .stages = 2},
                      {.data = 2, .stages = 3, .micro_batches = 4},
                      {.data = 2, .stages = 2, .micro_batches = 9, .schedule = kEager},
                      {.data = 4, .stages = 2, .micro_batches = 2, .schedule = kEager}},
                     trainings());
}

TEST(Replicas, HaveTheSameBitsWithStagesInTurns) {
  expect_the_bits_of({.data = 3, .accumulate = 2},
                     {{.data = 2, .accumulate = 2, .stages = 3},
                      {.data = 4, .accumulate = 2, .stages = 2, .micro_batches = 3, .schedule = kEager}},
                     trainings());
}

// Stages of one device have one group of NCCL; sets of devices may begin with any.
TEST(Replicas, MayHaveAnyDevices) {
  const auto trained = [](std::vector<LayerPlacement> model, int first = 0) {
    Training training = kResidual;
    training.options.parallel.model = std::move(model);
    training.options.device.index = first;
    return train(training, {.data = 2});
  };
  const EngineOutcome one = trained({});
  EXPECT_TRUE(one == trained({}, 2));
  EXPECT_TRUE(one == trained({{"stem", "cuda:2"}, {"block1", "cuda:0"}, {"block2", "cuda:2"}}));
  EXPECT_TRUE(one == trained({{"stem", "cuda:1"}, {"block2.bn1", "cuda:0"}, {"out", "cuda:1"}}));
  EXPECT_TRUE(one == trained({{"stem", "cuda:5"}}));
}

TEST(SeveralDevices, GiveTheSameBitsWhenStreamsWorkAtRandomTimes) {
  const Way staged{.stages = 3, .schedule = kEager}, in_pieces{.stages = 3, .micro_batches = 3},
      shared{.data = 3, .accumulate = 2}, all{.data = 2, .accumulate = 2, .stages = 3, .micro_batches = 8};
  for (const Training& training : {kCnn, mlp(), kResidual, kShortcuts}) {
    for (const Way& way : {staged, in_pieces, shared, all}) {
      if (training.cuts.size() < static_cast<std::size_t>(way.stages - 1)) continue;
      const EngineOutcome late = train(training, way);
      for (const std::uint64_t seed : {1, 2, 3}) {
        cuda::cudart::set_stream_seed(seed);
        EXPECT_TRUE(train(training, way) == late) << text(training, way) << ", seed " << seed;
      }
      cuda::cudart::set_stream_seed(0);
    }
  }
}

// A stage may be far ahead of the one that copies from it.
TEST(SeveralDevices, KeepABatchUntilTheNextStageHasIt) {
  const auto evaluated = [&] {
    const auto engine = engine_of(mlp(), {.stages = 2, .micro_batches = 2});
    for (std::uint64_t batch = 0; batch < 40; ++batch) engine->evaluate(batch_of(mlp(), 11, batch).view());
    return engine->take_totals().loss;
  };
  const double late = evaluated();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda::cudart::set_stream_seed(seed);
    EXPECT_EQ(evaluated(), late) << seed;
  }
  cuda::cudart::set_stream_seed(0);
}

TEST(SeveralDevices, WorkWithLibraries) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "library");
  for (const auto& [one, several] : {std::pair{Way{}, Way{.stages = 2, .micro_batches = 2}},
                                     {Way{.data = 2}, Way{.data = 2, .stages = 2}},
                                     {Way{.accumulate = 2}, Way{.accumulate = 2, .stages = 2}}}) {
    const std::string kernels = engine_of(kResidual, one)->kernels();
    EXPECT_EQ(kernels.front(), '{');
    EXPECT_EQ(engine_of(kResidual, several)->kernels(), kernels);
    EXPECT_TRUE(train(kResidual, one) == train(kResidual, several)) << text(kResidual, several);
  }
}

TEST(SeveralDevices, GoOnWithWhatOthersHaveTrained) {
  const auto go_on = [&](const Training& training, const std::vector<Way>& ways) {
    auto engine = engine_of(training, ways[0]);
    take_steps(*engine, training, ways[0]);
    for (const Way& way : std::span(ways).subspan(1)) {
      auto next = engine_of(training, way);
      test::hand_over(*engine, *next);
      engine = std::move(next);
      take_steps(*engine, training, way);
    }
    engine->take_totals();
    return outcome_of(*engine, training, ways[0]);
  };
  using Ways = std::vector<Way>;
  const std::pair<Ways, Ways> chains[] = {
      {{{}, {}, {}}, {{.stages = 2, .micro_batches = 2}, {}, {.stages = 3, .micro_batches = 3}}},
      {{{.data = 2}, {.data = 2}, {.data = 2}},
       {{.data = 4, .stages = 2, .micro_batches = 2},
        {.data = 2, .stages = 3, .schedule = kEager},
        {.data = 3}}},
      {{{.accumulate = 3}, {.accumulate = 3}},
       {{.accumulate = 3, .stages = 3}, {.accumulate = 3, .stages = 2}}}};
  for (const Training& training : {kCnn, mlp(), kResidual, kShortcuts}) {
    for (const auto& [one, several] : chains)
      EXPECT_TRUE(go_on(training, one) == go_on(training, several)) << text(training, several[0]);
  }
}

TEST(SeveralDevices, TrainOnWholeSetsAsOnBatchesOfTheirOwn) {
  const auto set_of = [](std::size_t images, std::uint64_t seed) {
    const test::OwnedBatch batch = batch_of(mlp(), images, seed);
    return std::make_shared<const SampleSet>(SampleSet{{1, 7, 7}, batch.pixels, batch.labels});
  };
  const auto set = set_of(70, 3);
  const auto parameters = [&](const Way& way, Placement placement, bool named) {
    Training training = mlp();
    training.options.placement = placement;
    const auto engine = engine_of(training, way);
    const std::uint32_t size = static_cast<std::uint32_t>(sizes_of(way)[0]);
    DataLoader loader({set, 0, 70}, {.batch_size = size, .shuffle = true, .seed = 5});
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch(epoch);
      while (const Batch* batch = loader.next()) {
        Batch copy = *batch;
        if (!named) copy.set = nullptr;
        engine->train(copy, 0.05);
      }
      // Evaluations of other sets may take the place of the trained one on the first set of devices.
      for (std::uint64_t other = 0; other < 4; ++other) {
        DataLoader evaluated({set_of(30, 20 + other), 0, 30}, {.batch_size = size});
        evaluated.begin_epoch(0);
        while (const Batch* batch = evaluated.next()) engine->evaluate(*batch);
      }
      EXPECT_EQ(engine->take_totals().samples, 70 + 4 * 30);
    }
    return engine->parameters();
  };
  for (const Way& way :
       {Way{.stages = 2, .micro_batches = 2}, Way{.data = 2, .accumulate = 2, .stages = 2}}) {
    const std::vector<float> resident = parameters(way, Placement::kDevice, true);
    EXPECT_EQ(parameters(way, Placement::kHost, true), resident) << text(mlp(), way);
    EXPECT_EQ(parameters(way, Placement::kAuto, false), resident) << text(mlp(), way);
  }
}

TEST(SeveralDevices, TellHowLongTheyExchanged) {
  const auto engine = engine_of(kResidual, {.data = 2, .stages = 2});
  EXPECT_EQ(engine->take_communication_seconds(), 0.0) << "nothing was asked for";
  for (int batch = 0; batch < 12; ++batch) take_steps(*engine, kResidual, {.data = 2});
  EXPECT_GT(engine->take_communication_seconds(), 0.0);
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
}

// Bytes on all devices that an engine takes. With small samples and few parameters, nearly all memory is that
// of activations and their gradients.
std::size_t memory_of(std::uint32_t batch_size, const Way& way, std::vector<LayerPlacement> model = {},
                      const Network& network = Network(test::small_residual(8), {1, 8, 8})) {
  const std::size_t before = cuda::cudart::memory_in_use();
  EngineOptions options{.device = {DeviceType::kCuda, 0}, .batch_size = batch_size};
  options.accumulate = way.accumulate;
  options.parallel.data = way.data;
  options.parallel.model = std::move(model);
  const auto engine = make_engine(network, options);
  const test::OwnedBatch batch = test::random_batch(batch_size, element_count(network.input()), 10, 11);
  engine->train(batch.view(), 0.01);
  std::vector<float> outputs(std::size_t{10} * batch_size);
  engine->evaluate_and_predict(batch.view(), outputs);
  return cuda::cudart::memory_in_use() - before;
}

// Turns are what one has of them: activations, but not parameters. Parameters are where their layers are, and
// nowhere else.
TEST(SeveralDevices, TakeTheMemoryOfWhatTheyHave) {
  const Way turns{.accumulate = 8};
  EXPECT_GT(memory_of(256, {}), 5 * memory_of(32, {}));
  EXPECT_LT(memory_of(256, turns), memory_of(32, {}) * 5 / 4);
  EXPECT_GT(memory_of(256, {.data = 2}), 4 * memory_of(256, {.data = 2, .accumulate = 8}));
  const std::vector<LayerPlacement> two = {{"stem", "cuda:0"}, {"block2", "cuda:1"}};
  EXPECT_GT(memory_of(512, {}, two), 4 * memory_of(512, turns, two));
  EXPECT_GT(memory_of(512, {.data = 2}, two), 3 * memory_of(512, {.data = 2, .accumulate = 8}, two));
  const Network wide({"wide", {test::flatten("flatten"), test::linear("fc", 4000), test::linear("out", 10)}},
                     {1, 28, 28});
  const auto one = static_cast<double>(memory_of(11, {}, {}, wide)),
             split = static_cast<double>(memory_of(11, {}, {{"flatten", "cuda:0"}, {"out", "cuda:1"}}, wide));
  EXPECT_NEAR(split / one, 1, 0.02);
}

TEST(SeveralDevices, LeaveNothingBehindIfThereIsTooLittleMemory) {
  const std::size_t before = cuda::cudart::memory_in_use();
  for (const auto& [bytes, way] : {std::pair{700'000, Way{.stages = 2}},
                                   {2'000'000, Way{.data = 4}},
                                   {2'000'000, Way{.data = 3, .stages = 2}}}) {
    cuda::cudart::set_memory_limit(before + static_cast<std::size_t>(bytes));
    EXPECT_THAT(test::message_of<DeviceError>([&, &w = way] { engine_of(kCnn, w); }),
                HasSubstr("out of memory"));
    cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
    EXPECT_EQ(cuda::cudart::memory_in_use(), before);
  }
}

TEST(SeveralDevices, FailInTheMiddleOfATrainingWithTheReason) {
  for (const Way& way : {Way{.data = 3}, Way{.data = 2, .stages = 2}}) {
    Training training = mlp();
    training.options.placement = Placement::kDevice;
    const auto engine = engine_of(training, way);
    const test::OwnedBatch owned = batch_of(training, 26);
    engine->train(owned.view(), 0.01);
    const auto set = std::make_shared<const SampleSet>(SampleSet{{1, 7, 7}, owned.pixels, owned.labels});
    const Batch resident{view(set->samples), view(set->targets), owned.rows, set};
    // Every device fails, one of them first.
    cuda::cudart::set_memory_limit(cuda::cudart::memory_in_use());
    const std::string problem = test::message_of<DeviceError>([&] {
      engine->train(resident, 0.01);
      engine->parameters();
    });
    cuda::cudart::set_memory_limit(std::numeric_limits<std::size_t>::max());
    EXPECT_THAT(problem, HasSubstr("out of memory"));
  }
}

// A rank leaves NCCL's group when all others do; one that waits for them elsewhere would let them wait.
TEST(SeveralDevices, LeaveTheirGroupTogether) {
  auto engine = engine_of(mlp(), {.data = 3});
  const auto begin = std::chrono::steady_clock::now();
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

EngineOptions options_of(int devices, int first = 0) {
  EngineOptions options{.device = {DeviceType::kCuda, first}};
  options.parallel.data = devices;
  return options;
}

TEST(SeveralDevices, SayWhatIsNotPossible) {
  const auto reason = [](const EngineOptions& options) {
    return test::message_of<DeviceError>([&] { make_engine(Network(test::mlp(), {1, 7, 7}), options); });
  };
  EXPECT_THAT(reason(options_of(5, 4)), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  EXPECT_THAT(reason(options_of(9)), HasSubstr("at most 8 GPUs, or sets of them, can share a batch"));
  EngineOptions staged = options_of(1, 7);
  staged.parallel.pipeline = PipelineOptions{.stages = 0, .first_layers = {"out"}, .micro_batches = 2};
  EXPECT_THAT(reason(staged), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices"));
  staged.device.index = 0;
  staged.parallel.data = 5;
  EXPECT_THAT(reason(staged), HasSubstr("there is no cuda:8: this machine has 8 CUDA devices, numbered "
                                        "from 0; \"parallel.data\": 5 wants as many sets of devices as the "
                                        "layers are on, up to cuda:9"));
  EngineOptions placed = options_of(1);
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
  EXPECT_EQ(reason(options_of(8), 8), "");
  EXPECT_EQ(reason(options_of(2, 7), 2), "");
  EXPECT_THAT(reason(options_of(4), 2), HasSubstr("with 2 MPI ranks, want 2, one GPU each"));
  EXPECT_THAT(reason(options_of(9), 9), HasSubstr("at most 8 GPUs"));
  EXPECT_THAT(reason(options_of(2, 8), 2), HasSubstr("there is no cuda:8"));
  EngineOptions stages = options_of(4);
  stages.parallel.model = {{"flatten", "cuda:6"}, {"out", "cuda:7"}};
  EXPECT_EQ(reason(stages, 4), "");
  EXPECT_THAT(reason(stages, 2), HasSubstr("with 2 MPI ranks, want 2, one GPU each, or one set of them"));
  stages.parallel.model[1].device = "cuda:8";
  EXPECT_THAT(reason(stages, 4), HasSubstr("there is no cuda:8"));
}

}  // namespace
}  // namespace sweep
