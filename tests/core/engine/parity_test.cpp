// Whole training steps on CUDA against the CPU engine's: same initial weights, same samples, same random
// numbers.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

#define SKIP_UNLESS_CUDA() \
  if (test::device().type != DeviceType::kCuda) GTEST_SKIP() << "compares a CUDA device with the CPU"

struct Outcome {
  std::vector<float> parameters, gradients, buffers, state;
  Totals trained, evaluated;
};

constexpr int kSteps = 3;
constexpr std::size_t kImages = 50, kLast = 19;

// Three full batches and a short one, then an evaluation.
Outcome train(const Network& network, EngineOptions options, const Device& device) {
  options.device = device;
  options.batch_size = kImages;
  const auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 7));
  const auto classes = static_cast<std::int32_t>(network.output()[0]);
  const std::size_t pixels = element_count(network.input());
  for (int step = 0; step < kSteps; ++step)
    engine->train(test::random_batch(kImages, pixels, classes, 20 + static_cast<std::uint64_t>(step)).view(),
                  0.003);
  engine->train(test::random_batch(kLast, pixels, classes, 30).view(), 0.002);
  Outcome outcome;
  outcome.trained = engine->take_totals();
  engine->evaluate(test::random_batch(kImages, pixels, classes, 31).view());
  outcome.evaluated = engine->take_totals();
  outcome.parameters = engine->parameters();
  outcome.gradients = engine->gradients();
  outcome.buffers = engine->buffers();
  for (const OptimizerState& state : engine->optimizer_state())
    outcome.state.insert(outcome.state.end(), state.values.begin(), state.values.end());
  return outcome;
}

double length(const std::vector<float>& values) {
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

// The length of the difference, as a share of the length.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  std::vector<float> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return a.empty() ? 0 : length(difference) / std::max(length(a), 1e-20);
}

// Rounding differs with the order of sums; where a gradient is nearly 0, Adam's steps depend on its sign,
// which four steps of 0.003 turn into differences of this size.
void expect_near(const Outcome& cuda, const Outcome& cpu, double tolerance) {
  EXPECT_LT(distance(cuda.parameters, cpu.parameters), tolerance);
  EXPECT_LT(distance(cuda.gradients, cpu.gradients), 10 * tolerance);
  EXPECT_LT(distance(cuda.buffers, cpu.buffers), tolerance);
  EXPECT_LT(distance(cuda.state, cpu.state), 10 * tolerance);
  EXPECT_NEAR(cuda.trained.loss / cpu.trained.loss, 1, tolerance);
  EXPECT_NEAR(cuda.evaluated.loss / cpu.evaluated.loss, 1, tolerance);
  EXPECT_NEAR(static_cast<double>(cuda.trained.correct), static_cast<double>(cpu.trained.correct), 1);
  EXPECT_EQ(cuda.trained.samples, static_cast<std::int64_t>(kSteps * kImages + kLast));
  EXPECT_EQ(cuda.evaluated.samples, cpu.evaluated.samples);
}

void expect_parity(const Network& network, const EngineOptions& options, double tolerance) {
  const Outcome cuda = train(network, options, test::device()),
                again = train(network, options, test::device());
  expect_near(cuda, train(network, options, parse_device("cpu")), tolerance);
  EXPECT_EQ(cuda.parameters, again.parameters) << "the same training has the same bits";
  EXPECT_EQ(cuda.gradients, again.gradients);
  EXPECT_EQ(cuda.trained.loss, again.trained.loss);
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
  const Network network(test::mlp(), {1, 28, 28});
  EngineOptions options;
  options.optimizer = GetParam().optimizer;
  options.clip_norm = GetParam().clip_norm;
  options.loss = GetParam().loss;
  expect_parity(network, options, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerParity, testing::ValuesIn(setups()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Parity, OfTheDeeplizardNetwork) {
  SKIP_UNLESS_CUDA();
  EngineOptions options;
  options.optimizer = AdamOptions{};
  options.transform = {{0.2861f}, {0.3530f}};
  expect_parity(Network(test::deeplizard(), {1, 28, 28}), options, 1e-3);
}

// The other engine has direct kernels only.
TEST(Parity, OfConvolutionsByWinogradsAlgorithm) {
  SKIP_UNLESS_CUDA();
  EngineOptions options;
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.transform = {{0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  expect_parity(Network(test::wide_convolutions(), {3, 13, 10}), options, 1e-4);
  expect_parity(Network(test::small_residual(16), {3, 16, 16}), options, 1e-4);
}

LayerSpec layer(std::string name, std::string type, Arguments arguments = {}) {
  return {std::move(name), std::move(type), std::move(arguments)};
}

// Every kind of layer: residual blocks, groups, dilation, batch norm, dropout, every activation and pool.
NetworkSpec everything() {
  const auto conv = [](std::string name, std::int64_t channels, Arguments arguments = {}) {
    LayerSpec spec = test::conv(std::move(name), channels, 3);
    spec.arguments["padding"] = std::int64_t{1};
    spec.arguments.merge(arguments);
    return spec;
  };
  LayerSpec plain = layer("block1", "residual");
  plain.layers = {conv("conv1", 8, {{"bias", false}}), layer("bn1", "batch_norm2d"), test::relu("relu"),
                  conv("conv2", 8, {{"groups", std::int64_t{4}}}),
                  layer("bn2", "batch_norm2d", {{"affine", false}})};
  LayerSpec narrowing = layer("block2", "residual");
  narrowing.layers = {conv("conv", 12, {{"stride", std::int64_t{2}}}), layer("tanh", "tanh")};
  narrowing.shortcut = {test::conv("conv", 12, 1)};
  narrowing.shortcut[0].arguments["stride"] = std::int64_t{2};
  return {"everything",
          {conv("stem", 8, {{"dilation", std::int64_t{2}}, {"padding", std::int64_t{2}}}),
           layer("gelu", "gelu"), plain, layer("drop1", "dropout", {{"p", 0.2}}),
           layer("avg", "avg_pool2d", {{"kernel_size", std::int64_t{2}}}), narrowing, test::relu("relu"),
           layer("leaky", "leaky_relu"),
           layer("max", "max_pool2d", {{"kernel_size", std::int64_t{3}}, {"stride", std::int64_t{1}}}),
           layer("adaptive", "adaptive_avg_pool2d", {{"output_size", std::int64_t{2}}}),
           test::flatten("flatten"), test::linear("fc", 20), layer("sigmoid", "sigmoid"),
           layer("drop2", "dropout"), test::linear("out", 5)}};
}

TEST(Parity, OfANetworkWithEveryKindOfLayer) {
  SKIP_UNLESS_CUDA();
  EngineOptions options;
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.transform = {{0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  options.seed = 77;
  expect_parity(Network(everything(), {3, 13, 12}), options, 1e-4);
}

// Convolutions with relu and pooling, as the second layer and as the first, which reads bytes. Kernels of 3
// × 3 and 5 × 5 become one op with them.
struct Fused {
  std::int64_t before, channels;  // output channels of the two convolutions
  std::array<std::int64_t, 2> kernel, padding;
  bool bias;
};

class FusedParity : public testing::TestWithParam<Fused> {};

TEST_P(FusedParity, OfAConvolutionWithReluAndPooling) {
  SKIP_UNLESS_CUDA();
  const auto [before, channels, kernel, padding, bias] = GetParam();
  LayerSpec first =
      layer("conv1", "conv2d", {{"out_channels", before}, {"kernel_size", kernel}, {"padding", padding}});
  LayerSpec second =
      layer("conv2", "conv2d", {{"out_channels", channels}, {"kernel_size", kernel}, {"padding", padding}});
  second.arguments["bias"] = bias;
  const Network network({"fused",
                         {first, test::relu("relu1"), test::pool("pool1", 2), second, test::relu("relu2"),
                          test::pool("pool2", 2), test::flatten("flatten"), test::linear("out", 7)}},
                        {3, 25, 22});
  EngineOptions options;
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.transform = {{0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  expect_parity(network, options, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FusedParity,
    testing::Values(Fused{4, 5, {3, 3}, {0, 0}, true}, Fused{1, 1, {1, 1}, {0, 0}, true},
                    Fused{8, 16, {3, 3}, {1, 1}, false},  // two rows of kernels per thread
                    Fused{2, 3, {5, 5}, {2, 1}, true}, Fused{2, 9, {2, 7}, {1, 4}, false},
                    Fused{3, 2, {4, 5}, {0, 3}, true}));

}  // namespace
}  // namespace sweep
