// What an engine measures of its work, and that it changes nothing.

#include "tests/support/training.h"

namespace sweep::profile_test {

using test::engine_for;

// Also of a network that trains in phases.
TEST(Profile, ChangesNoBitOfTheTraining) {
  for (const auto& [network, input] : {std::pair{test::with_dropout(test::deeplizard()), Shape{1, 28, 28}},
                                       {test::small_residual(), {3, 8, 8}}}) {
    const test::Training training{network, input, test::options_with(AdamOptions{}), {100, 37, 100}};
    const auto engine = test::engine_of(training, {.threads = 2});
    for (std::size_t step = 0; step < 3; ++step) {
      engine->profile(test::batch_of(training, step).view());
      test::take_steps(*engine, training, step, step + 1);
      EXPECT_EQ(engine->step_count(), step + 1);
    }
    EXPECT_TRUE(
        test::same_bits(test::outcome_of(*engine, training), test::train(training, test::Way{.threads = 2})));
  }
}

TEST(Profile, HasEveryLayerAndCountsFusedOnesUnderTheFirst) {
  SKIP_UNLESS_CPU();
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, {.threads = 1, .batch_size = 100, .optimizer = AdamOptions{}});
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
  const auto engine = engine_for(network, {.threads = 1, .batch_size = 1600});
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

// More exchanges than are measured without reading: of gradients, and of the sums of batch normalization,
// twelve in each step.
TEST(Communication, TellsHowLongDevicesExchanged) {
  const test::Training mlp{
      test::mlp(), {1, 7, 7}, test::options_with(AdamOptions{}), std::vector<std::size_t>(300, 4)},
      residual{test::small_residual(),
               {3, 8, 8},
               test::options_with(AdamOptions{}),
               std::vector<std::size_t>(22, 4)};
  EXPECT_EQ(test::engine_of(mlp, {})->take_communication_seconds(), std::nullopt);
  const test::Way shared{.data = 2}, staged{.data = 2, .stages = 2};
  bool is_any_possible = false;
  for (const auto& [training, way] :
       {std::pair{mlp, shared}, {residual, test::missing_devices(residual, staged) ? shared : staged}}) {
    if (test::missing_devices(training, way)) continue;
    is_any_possible = true;
    const auto engine = test::engine_of(training, way);
    EXPECT_EQ(engine->take_communication_seconds(), 0.0) << "nothing was asked for";
    const auto begin = std::chrono::steady_clock::now();
    test::take_steps(*engine, training);
    const double seconds = engine->take_communication_seconds().value_or(-1);
    EXPECT_GT(seconds, 0);
    EXPECT_LE(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    EXPECT_EQ(engine->take_communication_seconds(), 0.0);
  }
  if (!is_any_possible) GTEST_SKIP() << *test::missing_devices(mlp, shared);
}

}  // namespace sweep::profile_test
