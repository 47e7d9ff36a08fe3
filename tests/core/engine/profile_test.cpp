// Engine::profile(): what it measures, and that it changes nothing.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/engine/engine_for.h"

namespace sweep {
namespace {

using test::engine_for;
using test::Outcome;

// Three steps with dropout, with or without a profile before and after each.
Outcome train_three_steps_with_dropout(bool profiled) {
  NetworkSpec spec = test::deeplizard();
  spec.layers.insert(spec.layers.end() - 1, LayerSpec{"drop", "dropout", {}});
  const Network network(spec, {1, 28, 28});
  const auto engine = engine_for(network, 100, 2);
  const test::OwnedBatch batch = test::random_batch(100, 784, 10, 11),
                         other = test::random_batch(37, 784, 10, 12);
  for (int step = 0; step < 3; ++step) {
    if (profiled) engine->profile(other.view());
    engine->train(batch.view(), 0.01);
    if (profiled) engine->profile(batch.view());
    EXPECT_EQ(engine->step_count(), step + 1);
  }
  return {engine->parameters(), engine->gradients(), engine->take_totals()};
}

TEST(Profile, ChangesNoBitOfTheTraining) {
  const Outcome plain = train_three_steps_with_dropout(false),
                profiled = train_three_steps_with_dropout(true);
  EXPECT_EQ(profiled.parameters, plain.parameters);
  EXPECT_EQ(profiled.gradients, plain.gradients);
  EXPECT_EQ(profiled.totals.loss, plain.totals.loss);
  EXPECT_EQ(profiled.totals.correct, plain.totals.correct);
  EXPECT_EQ(profiled.totals.samples, plain.totals.samples);
}

TEST(Profile, HasEveryLayerAndCountsFusedOnesUnderTheFirst) {
  SKIP_UNLESS_CPU();
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, 100);
  const auto small = engine->profile(test::random_batch(20, 784, 10, 11).view());
  const auto profile = engine->profile(test::random_batch(100, 784, 10, 11).view());
  ASSERT_EQ(profile.size(), network.layers().size());
  for (std::size_t i = 0; i < profile.size(); ++i) {
    const Layer& layer = network.layers()[i];
    SCOPED_TRACE(layer.name);
    EXPECT_EQ(profile[i].layer, layer.name);
    if (layer.type == "conv2d" || layer.type == "linear") {
      EXPECT_GT(profile[i].seconds, 0);
      EXPECT_LT(profile[i].seconds, 60);
      std::size_t parameters = 0;
      for (const std::size_t index : layer.parameters) parameters += network.parameters()[index].count;
      EXPECT_GE(profile[i].bytes, parameters * sizeof(float));
      EXPECT_GT(profile[i].bytes, small[i].bytes) << "the activations grow with the batch";
    } else {
      EXPECT_EQ(profile[i].seconds, 0);
      EXPECT_EQ(profile[i].bytes, 0u);
    }
  }
  // The last layer is fused with nothing: 10 outputs of 7 blocks of 16, and its parameters with padding.
  const std::size_t outputs = 10 * 7 * 16, weights = network.layers().back().input[0] * 10 + 10;
  EXPECT_GE(profile.back().bytes, (outputs + weights) * sizeof(float));
  EXPECT_LE(profile.back().bytes, (outputs + weights + 2000) * sizeof(float));
}

TEST(Profile, TakesLongerForMoreSamplesAndRefusesTooMany) {
  SKIP_UNLESS_CPU();
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, 1600);
  const auto seconds = [&](std::size_t images) {
    double sum = 0;
    for (const LayerProfile& layer : engine->profile(test::random_batch(images, 784, 10, 11).view()))
      sum += layer.seconds;
    return sum;
  };
  EXPECT_GT(seconds(1600), seconds(16));  // a hundred times as much
  EXPECT_THROW(seconds(1601), ShapeError);
  EXPECT_EQ(seconds(0), 0);
}

}  // namespace
}  // namespace sweep
