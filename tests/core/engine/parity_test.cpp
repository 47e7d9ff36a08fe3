// Whole trainings on a device, on several that share batches, and in parts, against those of one CPU: equal
// except for rounding.

#include "tests/support/training.h"

namespace sweep::parity_test {

using namespace test;

#define SKIP_UNLESS_CUDA() \
  if (device().type != DeviceType::kCuda) GTEST_SKIP() << "compares a CUDA device with the CPU"

Way cpu(int accumulate = 1) { return {.accumulate = accumulate, .device = {}}; }

// Rounding differs with the order of sums; where a gradient is nearly 0, Adam's steps depend on its sign,
// which four steps of 0.003 turn into differences of this size.
void expect_parity(const NetworkSpec& network, const Shape& input, EngineOptions options,
                   double tolerance = 1e-4) {
  options.seed = 77;
  const Training training{.network = network,
                          .input = input,
                          .options = options,
                          .batches = device_is_stand_in() ? std::vector<std::size_t>{50, 19}
                                                          : std::vector<std::size_t>{50, 50, 50, 19},
                          .learning_rate = 0.003};
  const EngineOutcome cuda = train(training, Way{});
  expect_near(cuda, train(training, cpu()), tolerance);
  EXPECT_TRUE(same_bits(cuda, train(training, Way{}))) << "the same training has the same bits";
}

EngineOptions of_three_channels() {
  return {.optimizer = SgdOptions{.momentum = 0.9}, .transform = {{0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}}};
}

struct Setup {
  std::string name;
  OptimizerOptions optimizer;
  double clip_norm = 0;
  LossOptions loss = {};
};

std::vector<Setup> setups() {
  return {{"sgd", SgdOptions{}},
          {"momentum", SgdOptions{.momentum = 0.9, .weight_decay = 0.01}},
          {"nesterov", SgdOptions{.momentum = 0.9, .nesterov = true}},
          {"dampening", SgdOptions{.momentum = 0.8, .dampening = 0.3}},
          {"adam", AdamOptions{.weight_decay = 0.01}},
          {"adamw", AdamOptions{.beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1, .decoupled = true}},
          {"rmsprop", RmspropOptions{.weight_decay = 0.01}},
          {"rmsprop_centered", RmspropOptions{.alpha = 0.9, .momentum = 0.5, .centered = true}},
          {"clipped", AdamOptions{}, 0.05},
          {"smoothed", SgdOptions{}, 0, {LossOptions::Kind::kCrossEntropy, 0.2}},
          {"mse", SgdOptions{.momentum = 0.9}, 0.1, {LossOptions::Kind::kMse, 0}}};
}

class OptimizerParity : public testing::TestWithParam<Setup> {};

TEST_P(OptimizerParity, OfASmallNetwork) {
  SKIP_UNLESS_CUDA();
  const auto& [name, optimizer, clip_norm, loss] = GetParam();
  expect_parity(mlp(), {1, 28, 28}, {.optimizer = optimizer, .loss = loss, .clip_norm = clip_norm});
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerParity, testing::ValuesIn(setups()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Parity, OfTheDeeplizardNetwork) {
  SKIP_UNLESS_CUDA();
  const EngineOptions of_one_channel{.optimizer = AdamOptions{}, .transform = {{0.2861f}, {0.3530f}}};
  expect_parity(deeplizard(), {1, 28, 28}, of_one_channel, 1e-3);
  expect_parity(deeplizard(), {3, 25, 22}, of_three_channels(), 1e-3);
}

// The other engine has direct kernels only.
TEST(Parity, OfConvolutionsByWinogradsAlgorithm) {
  SKIP_UNLESS_CUDA();
  expect_parity(wide_convolutions(), {3, 13, 10}, of_three_channels());
  expect_parity(small_residual(16), {3, 16, 16}, of_three_channels());
}

// Every kind of layer: residual blocks, groups, dilation, batch norm, dropout, every activation and pool.
NetworkSpec everything() {
  const std::int64_t one = 1, two = 2, three = 3, four = 4;
  return {
      "everything",
      {conv("stem", 8, 3, {{"dilation", two}, {"padding", two}}), layer("gelu", "gelu"),
       residual("block1", {conv("conv1", 8, 3, {{"padding", one}, {"bias", false}}), norm("bn1"),
                           relu("relu"), conv("conv2", 8, 3, {{"padding", one}, {"groups", four}}),
                           norm("bn2", {{"affine", false}})}),
       dropout(0.2), layer("avg", "avg_pool2d", {{"kernel_size", two}}),
       residual("block2", {conv("conv", 12, 3, {{"padding", one}, {"stride", two}}), layer("tanh", "tanh")},
                {conv("conv", 12, 1, {{"stride", two}})}),
       relu("relu"), layer("leaky", "leaky_relu"),
       layer("max", "max_pool2d", {{"kernel_size", three}, {"stride", one}}), average(2), flatten("flatten"),
       linear("fc", 20), layer("sigmoid", "sigmoid"), layer("silu", "silu"), layer("drop2", "dropout"),
       linear("out", 5)}};
}

TEST(Parity, OfANetworkWithEveryKindOfLayer) {
  SKIP_UNLESS_CUDA();
  expect_parity(everything(), {3, 13, 12}, of_three_channels());
}

TEST(Parity, OfDevicesThatShareBatches) {
  SKIP_UNLESS_CUDA();
  if (const auto reason = missing_devices(kMlp, {.data = 2})) GTEST_SKIP() << *reason;
  for (const Training& training : shared_trainings()) {
    if (missing_devices(training, {.data = 2})) continue;
    SCOPED_TRACE(training.network.name);
    const EngineOutcome two = train(training, Way{.data = 2});
    for (const Way& one : {Way{}, cpu()}) expect_near(two, train(training, one), 1e-3);
  }
}

// The gradient of one batch, in ways that cut it.
void expect_gradient(Training training, const Way& of_cpu, const std::vector<Way>& ways, double tolerance) {
  training.learning_rate = 0;
  const EngineOutcome expected = train(training, of_cpu);
  for (const Way& way : ways) {
    if (missing_devices(training, way)) continue;
    SCOPED_TRACE(testing::Message() << training.network.name << ", " << way);
    const EngineOutcome found = train(training, way);
    expect_near(found.gradients, expected.gradients, tolerance);
    expect_near(found.buffers, expected.buffers, 1e-5);
    EXPECT_NEAR(found.trained.loss / expected.trained.loss, 1, 1e-5);
    EXPECT_EQ(found.trained.samples, expected.trained.samples);
    EXPECT_EQ(found.steps, 1);
  }
}

// Convolutions that one kernel takes with their ReLU and pooling, one or two in a row: as the first layers,
// and after one that their gradient goes to.
TEST(Parity, OfPooledConvolutions) {
  SKIP_UNLESS_CUDA();
  using Pair = std::array<std::int64_t, 2>;
  const auto padded = [](std::int64_t y, std::int64_t x) { return Arguments{{"padding", Pair{y, x}}}; };
  const std::pair<Shape, std::vector<LayerSpec>> rows[] = {
      {{1, 28, 28}, {conv("a", 6, 5), conv("b", 12, 5)}},
      {{3, 11, 10}, {conv("a", 8, 3, padded(1, 1)), conv("b", 10, 3, padded(1, 1))}},
      {{2, 13, 12}, {conv("a", 5, 3), conv("b", 4, 3, padded(2, 3))}},
      {{2, 9, 11}, {conv("a", 3, 3, {{"padding", Pair{0, 2}}, {"bias", false}})}},
      {{10, 6, 7}, {conv("a", 16, 3)}},
      {{1, 17, 18}, {conv("a", 6, 5), conv("b", 16, 5)}},
      {{4, 6, 6}, {conv("a", 6, 5)}},
      {{12, 8, 8}, {conv("a", 8, 3, padded(1, 1))}},
      {{3, 18, 18}, {conv("a", 4, 5)}}};
  for (const auto& [input, convolutions] : rows) {
    for (const bool are_first : {true, false}) {
      std::vector<LayerSpec> layers;
      if (!are_first) layers = {conv("before", input[0], 1), layer("tanh", "tanh")};
      for (const LayerSpec& convolution : convolutions)
        layers.insert(layers.end(),
                      {convolution, relu("relu " + convolution.name), pool("pool " + convolution.name, 2)});
      layers.insert(layers.end(), {flatten("flatten"), linear("out", 10)});
      expect_gradient({.network = {"pooled", layers}, .input = input, .batches = {3}}, cpu(), {Way{}}, 1e-5);
    }
  }
}

TEST(Parity, OfTheGradientOfABatchThatIsCut) {
  for (Training training : shared_trainings()) {
    training.batches = {50};
    expect_gradient(training, cpu(), {{.data = 2}}, 1e-5);
  }
  // Parts of two sizes, and more parts than samples.
  for (Training training : {kMlp, kCnn}) {
    training.batches = {23};
    expect_gradient(training, cpu(),
                    {{.accumulate = 2}, {.accumulate = 3}, {.accumulate = 30}, {.accumulate = 1'000'000'000}},
                    1e-5);
  }
}

// Where parts are multiples of 16 samples, they are the same on all devices.
TEST(Parity, OfBatchNormalizationOfEachPartByItself) {
  const Training training{.network = small_residual(),
                          .input = {3, 8, 8},
                          .options = options_with(SgdOptions{}),
                          .batches = {64}};
  expect_gradient(training, cpu(2),
                  {{.accumulate = 2}, {.data = 2, .accumulate = 2}, {.data = 3, .accumulate = 2}}, 1e-4);
  EXPECT_NE(train(training, Way{.accumulate = 2}).buffers, train(training, Way{}).buffers);
  // Parts whose samples are the same have the statistics of one part.
  Training doubled = training;
  doubled.batches = {128};
  const auto whole = engine_of(training, {}), parts = engine_of(doubled, {.accumulate = 2});
  OwnedBatch batch = batch_of(training);
  whole->train(batch.view(), 0);
  for (std::uint32_t sample = 0; sample < 64; ++sample) batch.indices.push_back(sample);
  parts->train(batch.view(), 0);
  expect_near(parts->gradients(), whole->gradients(), 1e-4);
  EXPECT_EQ(parts->step_count(), 1);
}

TEST(Parity, OfAnEvaluationInParts) {
  const Training training{.network = small_residual(), .input = {3, 8, 8}, .batches = {50}};
  const auto whole = engine_of(training, {}), parts = engine_of(training, {.accumulate = 4});
  const EngineOutcome expected = outcome_of(*whole, training), found = outcome_of(*parts, training);
  expect_near(found.outputs, expected.outputs, 1e-5);
  EXPECT_NEAR(found.evaluated.loss / expected.evaluated.loss, 1, 1e-5);
  EXPECT_EQ(found.evaluated.correct, expected.evaluated.correct);
  EXPECT_EQ(found.evaluated.samples, 50);
}

}  // namespace sweep::parity_test
