// Batches that are trained in parts, one after another, with one step of the optimizer.
#include <gtest/gtest.h>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::expect_near;

EngineOptions options_of(std::size_t batch_size, int accumulate) {
  EngineOptions options{.device = test::device(), .threads = 2, .batch_size = batch_size};
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.accumulation_steps = accumulate;
  options.seed = 7;
  return options;
}

std::unique_ptr<Engine> engine_of(const Network& network, const EngineOptions& options) {
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

// Parts of two sizes, and more parts than samples.
TEST(Accumulate, HasTheGradientOfTheWholeBatch) {
  const Network mlp(test::with_dropout(test::mlp()), {1, 7, 7}), cnn(test::deeplizard(), {1, 28, 28});
  for (const Network* network : {&mlp, &cnn}) {
    const test::OwnedBatch batch = test::random_batch(23, element_count(network->input()), 10, 12);
    const auto trained = [&](int accumulate) {
      EngineOptions options = options_of(23, accumulate);
      options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0, 3, 0.25F, 8, 1};
      auto engine = engine_of(*network, options);
      engine->train(batch.view(), 0);
      return engine;
    };
    const auto whole = trained(1);
    const double loss = whole->take_totals().loss;
    for (const int accumulate : {2, 3, 30, 1'000'000'000}) {
      SCOPED_TRACE(accumulate);
      const auto engine = trained(accumulate);
      expect_near(engine->gradients(), whole->gradients(), 1e-5);
      EXPECT_EQ(engine->step_count(), 1);
      const Totals totals = engine->take_totals();
      EXPECT_NEAR(totals.loss / loss, 1, 1e-5);
      EXPECT_EQ(totals.samples, 23);
    }
  }
}

// Where parts are multiples of 16 samples, they are the same on all devices.
TEST(Accumulate, NormalizesEachPartAsTheCpuDoes) {
  const Network network(test::small_residual(), {3, 8, 8});
  const test::OwnedBatch batch = test::random_batch(64, element_count(network.input()), 10, 12);
  const auto trained = [&](const EngineOptions& options) {
    auto engine = engine_of(network, options);
    engine->train(batch.view(), 0.01);
    return engine;
  };
  EngineOptions cpu = options_of(64, 2);
  cpu.device = {};
  const auto one = trained(cpu), whole = trained(options_of(64, 1));
  for (const int devices : {1, 2, 3}) {
    if (devices > 1 && device_group_unavailable_reason(test::device(), devices)) continue;
    EngineOptions options = options_of(64, 2);
    options.parallel.data = devices;
    const auto engine = trained(options);
    expect_near(engine->gradients(), one->gradients(), 1e-4);
    expect_near(engine->buffers(), one->buffers(), 1e-5);
    EXPECT_NE(engine->buffers(), whole->buffers());
  }
}

TEST(Accumulate, EvaluatesAsWithoutIt) {
  const Network network(test::small_residual(), {3, 8, 8});
  const test::OwnedBatch batch = test::random_batch(50, element_count(network.input()), 10, 12);
  struct Evaluated {
    std::vector<float> predicted, outputs;
    Totals totals;
  };
  const auto evaluated = [&](int accumulate) {
    EngineOptions options = options_of(50, accumulate);
    options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0, 3, 0.25F, 8, 1};
    const auto engine = engine_of(network, options);
    Evaluated results{std::vector<float>(500), std::vector<float>(500), {}};
    engine->predict(batch.view(), results.predicted);
    engine->evaluate(batch.view());
    engine->evaluate_and_predict(batch.view(), results.outputs);
    results.totals = engine->take_totals();
    return results;
  };
  const Evaluated whole = evaluated(1), parts = evaluated(4);
  expect_near(parts.predicted, whole.predicted, 1e-5);
  EXPECT_EQ(parts.outputs, parts.predicted);
  EXPECT_NEAR(parts.totals.loss / whole.totals.loss, 1, 1e-5);
  EXPECT_EQ(parts.totals.correct, whole.totals.correct);
  EXPECT_EQ(parts.totals.samples, 100);
}

// Also many steps, which a device may be given at once.
TEST(Accumulate, TrainsOnWholeSetsAsOnBatchesOfTheirOwn) {
  const Network network(test::with_dropout(test::mlp()), {1, 7, 7});
  const auto set = test::random_set(320, {1, 7, 7}, 10, 3);
  const auto trained = [&](Placement placement, bool prepares) {
    EngineOptions options = options_of(7, 3);
    options.placement = placement;
    const auto engine = engine_of(network, options);
    DataLoader loader({set, 2, 310}, {.batch_size = 7, .shuffle = true, .seed = 5});
    if (prepares) engine->prepare(loader.samples(), std::vector<Subset>{{set, 0, 100}});
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch(epoch);
      while (const Batch* batch = loader.next()) engine->train(*batch, 0.05);
      DataLoader evaluated({set, 0, 100}, {.batch_size = 7});
      evaluated.begin_epoch(0);
      while (const Batch* batch = evaluated.next()) engine->evaluate(*batch);
    }
    EXPECT_EQ(engine->take_totals().samples, 2 * 410);
    return engine->parameters();
  };
  const std::vector<float> whole = trained(Placement::kAuto, false);
  EXPECT_EQ(trained(Placement::kHost, false), whole);
  EXPECT_EQ(trained(Placement::kAuto, true), whole);
}

}  // namespace
}  // namespace sweep
