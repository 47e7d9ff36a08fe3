// Devices that share each batch: the same bits however many they are.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "tests/core/engine/engine_for.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

// Skips a test that needs more devices than there are.
#define SKIP_WITHOUT_DEVICES(count)                                               \
  if (const auto reason = device_group_unavailable_reason(test::device(), count)) \
  GTEST_SKIP() << "needs " << (count) << " devices: " << *reason

using test::EngineOutcome;
using test::expect_near;

struct Training {
  NetworkSpec network;
  Shape input;
  OptimizerOptions optimizer = AdamOptions{};
  double clip_norm = 0;
  std::vector<float> class_weights = {};
  int accumulate = 1;
};

NetworkSpec cnn_without_fusion() {
  return {"cnn",
          {test::conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           {"dropout", "dropout", {{"p", 0.2}}},
           test::flatten("flatten"),
           test::linear("fc1", 40),
           {"tanh", "tanh", {}},
           test::linear("out", 10)}};
}

// Batch normalization of the input, without parameters and with gradients for nobody, and twice of a
// convolution whose input others read, too.
NetworkSpec norm_first() {
  LayerSpec residual{"block", "residual"};
  residual.layers = {{"bn1", "batch_norm2d"}, test::relu("relu"), test::conv("conv2", 4, 1)};
  LayerSpec bare{"bare", "batch_norm2d", {{"affine", false}}};
  return {"norm-first",
          {bare,
           test::conv("conv1", 4, 3),
           residual,
           {"bn2", "batch_norm2d"},
           {"dropout", "dropout", {{"p", 0.2}}},
           test::flatten("flatten"),
           test::linear("out", 10)}};
}

// That differ much, so that parts of a batch have different sums of them.
std::vector<float> some_weights() { return {0.1F, 5, 1, 0.5F, 2, 0, 3, 0.25F, 8, 1}; }

std::vector<Training> trainings() {
  return {{test::deeplizard(), {1, 28, 28}},
          {test::with_dropout(test::mlp()), {1, 28, 28}, SgdOptions{.momentum = 0.9}},
          {cnn_without_fusion(), {1, 9, 9}, AdamOptions{}, 0.1},
          {test::with_dropout(test::mlp()), {1, 7, 7}, AdamOptions{}, 0, some_weights()},
          {cnn_without_fusion(), {1, 9, 9}, SgdOptions{}, 0, some_weights()},
          {test::small_residual(), {3, 8, 8}, SgdOptions{.momentum = 0.9}},
          {norm_first(), {3, 6, 6}, SgdOptions{}, 0.1, some_weights()}};
}

// In turns, of which small batches have fewer.
std::vector<Training> accumulating_trainings() {
  return {{test::with_dropout(test::mlp()), {1, 7, 7}, AdamOptions{}, 0, some_weights(), 3},
          {test::small_residual(), {3, 8, 8}, SgdOptions{.momentum = 0.9}, 0, {}, 2},
          {norm_first(), {3, 6, 6}, AdamOptions{}, 0.1, some_weights(), 3}};
}

constexpr std::size_t kBatch = 50;
// Whole batches, one whose parts have two sizes, and two with fewer samples than parts.
constexpr std::size_t kSizes[] = {50, 50, 13, 5, 50, 1};

EngineOptions options_of(const Training& training, int devices) {
  EngineOptions options{.device = test::device(), .threads = 2, .batch_size = kBatch};
  options.optimizer = training.optimizer;
  options.clip_norm = training.clip_norm;
  options.loss.class_weights = training.class_weights;
  options.accumulation_steps = training.accumulate;
  options.seed = 7;
  options.parallel.data = devices;
  return options;
}

EngineOutcome train(const Training& training, const EngineOptions& options) {
  const Network network(training.network, training.input);
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch owned = test::random_batch(kBatch, element_count(network.input()), 10, 11);
  test::train_steps(*engine, owned.view(), kSizes);
  return test::outcome_of(*engine, network, owned.view());
}

EngineOutcome train(const Training& training, int devices) {
  return train(training, options_of(training, devices));
}

void expect_the_same_bits_on_any_number_of_devices(const std::vector<Training>& trainings) {
  for (const Training& training : trainings) {
    SCOPED_TRACE(training.network.name);
    const EngineOutcome two = train(training, 2);
    for (const int devices : {3, 4}) {
      if (device_group_unavailable_reason(test::device(), devices)) continue;
      EXPECT_TRUE(test::same_bits(two, train(training, devices))) << devices;
    }
    EXPECT_TRUE(test::same_bits(two, train(training, 2))) << "once more";
    EXPECT_TRUE(std::isfinite(two.trained.loss) && std::isfinite(two.evaluated.loss));
  }
}

TEST(DataParallel, GivesTheSameBitsOnAnyNumberOfDevices) {
  SKIP_WITHOUT_DEVICES(2);
  expect_the_same_bits_on_any_number_of_devices(trainings());
}

TEST(DataParallel, GivesTheSameBitsOnAnyNumberOfDevicesInTurns) {
  SKIP_WITHOUT_DEVICES(2);
  expect_the_same_bits_on_any_number_of_devices(accumulating_trainings());
}

TEST(DataParallel, DiffersFromOneDeviceByRoundingOnly) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    SCOPED_TRACE(training.network.name);
    const EngineOutcome two = train(training, 2);
    EngineOptions cpu = options_of(training, 1);
    cpu.device = {};
    for (const EngineOutcome& one : {train(training, 1), train(training, cpu)}) {
      // Adam's division makes much of the rounding of small gradients.
      expect_near(two.parameters, one.parameters, 1e-3);
      expect_near(two.buffers, one.buffers, 1e-3);
      expect_near(two.outputs, one.outputs, 1e-2);
      EXPECT_NEAR(two.trained.loss / one.trained.loss, 1, 1e-4);
      EXPECT_NEAR(two.evaluated.loss / one.evaluated.loss, 1, 1e-4);
      EXPECT_NEAR(static_cast<double>(two.trained.correct), static_cast<double>(one.trained.correct), 1);
      EXPECT_EQ(two.trained.samples, one.trained.samples);
      EXPECT_EQ(two.evaluated.samples, one.evaluated.samples);
    }
  }
}

TEST(DataParallel, HasTheGradientOfTheWholeBatch) {
  SKIP_WITHOUT_DEVICES(2);
  for (const Training& training : trainings()) {
    SCOPED_TRACE(training.network.name);
    const Network network(training.network, training.input);
    const test::OwnedBatch owned = test::random_batch(kBatch, element_count(network.input()), 10, 12);
    const auto gradients = [&](const EngineOptions& options) {
      const auto engine = make_engine(network, options);
      engine->set_parameters(initial_parameters(network, 3));
      engine->train(owned.view(), 0);
      return engine->gradients();
    };
    EngineOptions cpu = options_of(training, 1);
    cpu.device = {};
    expect_near(gradients(options_of(training, 2)), gradients(cpu), 1e-5);
  }
}

TEST(DataParallel, GoesOnWithTheSameBitsOnAnotherNumberOfDevices) {
  SKIP_WITHOUT_DEVICES(3);
  const Training training{test::with_dropout(test::mlp()), {1, 28, 28}};
  const Network network(training.network, training.input);
  const test::OwnedBatch owned = test::random_batch(kBatch, element_count(network.input()), 10, 11);
  const auto go_on = [&](int devices) {
    const auto first = make_engine(network, options_of(training, 3));
    first->set_parameters(initial_parameters(network, 3));
    first->train(owned.view(), 0.01);
    first->take_totals();
    const EngineOptions options = options_of(training, devices);
    const auto second = make_engine(network, options);
    test::hand_over(*first, *second);
    second->train(owned.view(), 0.01);
    EXPECT_EQ(second->step_count(), 2);
    return test::outcome_of(*second, network, owned.view());
  };
  EXPECT_TRUE(test::same_bits(go_on(3), go_on(2)));
}

TEST(DataParallel, TrainsOnWholeSetsAsOnBatchesOfTheirOwn) {
  SKIP_WITHOUT_DEVICES(2);
  const Training training{test::mlp(), {1, 7, 7}};
  const Network network(training.network, training.input);
  const auto set_of = [](std::size_t images, std::uint64_t seed) {
    return test::random_set(images, {1, 7, 7}, 10, seed);
  };
  const auto set = set_of(320, 3);
  struct Way {
    int data, stages, accumulate;
  };
  const auto train = [&](const Way& way, Placement placement, bool named, int num_workers) {
    EngineOptions options = options_of(training, way.data);
    if (way.stages > 1)
      options.parallel.pipeline =
          PipelineOptions{.stages = way.stages, .first_layers = {}, .micro_batches = 2};
    options.accumulation_steps = way.accumulate;
    options.placement = placement;
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 1));
    DataLoader loader({set, 2, 310},
                      {.batch_size = 20, .shuffle = true, .num_workers = num_workers, .seed = 5});
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch(epoch);
      while (const Batch* batch = loader.next()) {
        Batch copy = *batch;
        if (!named) copy.set = nullptr;
        engine->train(copy, 0.05);
      }
      // Evaluations of other sets may take the place of the trained one on the first device.
      for (std::uint64_t other = 0; other < 4; ++other) {
        DataLoader evaluated({set_of(60, 20 + other), 0, 60}, {.batch_size = 20});
        evaluated.begin_epoch(0);
        while (const Batch* batch = evaluated.next()) engine->evaluate(*batch);
      }
      EXPECT_EQ(engine->take_totals().samples, 310 + 4 * 60);
    }
    return engine->parameters();
  };
  for (const Way& way : {Way{2, 1, 1}, Way{1, 2, 1}, Way{2, 2, 2}}) {
    if (device_group_unavailable_reason(test::device(), way.data * way.stages)) continue;
    SCOPED_TRACE(testing::Message() << way.data << " sets of " << way.stages);
    const std::vector<float> whole = train(way, Placement::kAuto, true, 0);
    EXPECT_EQ(train(way, Placement::kHost, true, 0), whole);
    EXPECT_EQ(train(way, Placement::kAuto, false, 0), whole);
    EXPECT_EQ(train(way, Placement::kAuto, true, 2), whole);
  }
}

TEST(DataParallel, TellsHowLongDevicesExchangedGradients) {
  SKIP_WITHOUT_DEVICES(2);
  const Training training{test::mlp(), {1, 7, 7}};
  const Network network(training.network, training.input);
  const auto alone = make_engine(network, options_of(training, 1));
  EXPECT_EQ(alone->take_communication_seconds(), std::nullopt);
  const auto engine = make_engine(network, options_of(training, 2));
  engine->set_parameters(initial_parameters(network, 1));
  EXPECT_EQ(engine->take_communication_seconds(), 0.0) << "nothing was asked for";
  const test::OwnedBatch batch = test::random_batch(16, 49, 10, 3);
  const auto begin = std::chrono::steady_clock::now();
  // More exchanges than are measured without reading.
  for (int step = 0; step < 300; ++step) engine->train(batch.view(), 0.01);
  const double seconds = engine->take_communication_seconds().value_or(-1);
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, passed);
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
}

// Also the sums of batch normalization, twelve in each step: more exchanges than are measured without
// reading.
TEST(DataParallel, TellsHowLongDevicesExchangedSums) {
  SKIP_WITHOUT_DEVICES(2);
  const Training training{test::small_residual(), {3, 8, 8}};
  const Network network(training.network, training.input);
  const test::OwnedBatch batch = test::random_batch(16, element_count(network.input()), 10, 3);
  EngineOptions options = options_of(training, 2);
  if (!device_group_unavailable_reason(test::device(), 4))
    options.parallel.pipeline = PipelineOptions{.stages = 2, .first_layers = {}, .micro_batches = 1};
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 1));
  engine->take_communication_seconds();
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < 22; ++step) engine->train(batch.view(), 0.01);
  const double seconds = engine->take_communication_seconds().value_or(-1);
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, passed);
}

TEST(DataParallel, TakesABatchThatChangesOnceTrainReturns) {
  SKIP_WITHOUT_DEVICES(2);
  const Training training{test::mlp(), {1, 7, 7}};
  const Network network(training.network, training.input);
  const auto train = [&](bool change) {
    const auto engine = make_engine(network, options_of(training, 2));
    engine->set_parameters(initial_parameters(network, 1));
    for (std::uint64_t step = 0; step < 5; ++step) {
      test::OwnedBatch batch = test::random_batch(30, 49, 10, step);
      engine->train(batch.view(), 0.05);
      if (!change) engine->parameters();
      std::fill(batch.pixels.begin(), batch.pixels.end(), std::uint8_t{255});
    }
    return engine->parameters();
  };
  EXPECT_EQ(train(true), train(false));
}

}  // namespace
}  // namespace sweep
