// Training with bf16 factors: it gives the same bits everywhere, is close to fp32, and is
// refused where it is not available.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/kernels/bf16_pairs.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::Environment;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kVariable = "SWEEP_BF16";

LayerSpec conv_with(std::string name, std::int64_t channels, std::int64_t kernel, Arguments arguments) {
  LayerSpec layer = test::conv(std::move(name), channels, kernel);
  layer.arguments.insert(arguments.begin(), arguments.end());
  return layer;
}

// Every kind of convolution that the engine has, and linear layers with odd sizes.
Network all_layer_kinds() {
  const std::int64_t one = 1, two = 2;
  return Network({"many-kinds",
                  {conv_with("grouped", 6, 3, {{"groups", two}, {"padding", one}}),
                   {"norm", "batch_norm2d"},
                   test::relu("relu1"),
                   conv_with("padded", 7, 3, {{"padding", one}, {"bias", false}}),
                   {"norm2", "batch_norm2d"},
                   conv_with("strided", 5, 3, {{"stride", two}, {"padding", one}}),
                   test::relu("relu2"),
                   conv_with("dilated", 7, 3, {{"dilation", two}, {"padding", two}}),
                   conv_with("depthwise", 7, 3, {{"groups", std::int64_t{7}}, {"padding", one}}),
                   test::conv("one", 5, 1),
                   test::relu("relu3"),
                   test::conv("pooled", 9, 3),
                   test::relu("relu4"),
                   test::pool("pool", 2),
                   test::flatten("flatten"),
                   test::linear("hidden", 33),
                   test::relu("relu5"),
                   test::linear("out", 10)}},
                 {4, 12, 12});
}

struct Outcome {
  std::vector<float> parameters, gradients;
  double loss;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) {
    float pair = 0;
    cpu::pack_pairs(&value, nullptr, 1, &pair);
    value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(pair) << 16);
  }
  return values;
}

Outcome train(const Network& network, Precision precision, int steps, int threads = 1,
              OptimizerOptions optimizer = SgdOptions{}, bool round_weights = false) {
  const auto engine = make_engine(
      network,
      {.device = {}, .threads = threads, .batch_size = 85, .optimizer = optimizer, .precision = precision});
  const std::vector<float> weights = initial_parameters(network, 3);
  engine->set_parameters(round_weights ? rounded(weights) : weights);
  const test::OwnedBatch batch = test::random_batch(85, element_count(network.input()), 10, 11);
  Totals totals;
  for (int step = 0; step < steps; ++step) {
    engine->train(batch.view(), 0.01);
    totals = engine->take_totals();
  }
  return {engine->parameters(), engine->gradients(), totals.loss / 85};
}

double length(const std::vector<float>& vector) {
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

double distance(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return length(a);
}

TEST(Bf16Engine, GivesTheSameBitsForAnyNumberOfThreads) {
  const Environment emulated(kVariable, "emulate");
  const Outcome one = train(all_layer_kinds(), Precision::kBf16, 3, 1);
  for (const int threads : {2, 3, 4})
    EXPECT_EQ(train(all_layer_kinds(), Precision::kBf16, 3, threads), one) << threads;
}

TEST(Bf16Engine, GivesTheSameBitsInHardwareAndEmulation) {
  if (cpu::bf16_hardware_kernels() == nullptr) GTEST_SKIP() << "no AVX512_BF16";
  const auto both = [](const Network& network) {
    const Environment hardware(kVariable, nullptr);
    const Outcome outcome = train(network, Precision::kBf16, 3);
    const Environment emulated(kVariable, "emulate");
    EXPECT_EQ(train(network, Precision::kBf16, 3), outcome) << network.name();
  };
  both(all_layer_kinds());
  both(Network(test::deeplizard(), {1, 28, 28}));
  both(Network(test::small_residual(), {3, 8, 8}));
}

TEST(Bf16Engine, HasGradientsWithinTheRoundingOfTheirFactors) {
  const Environment emulated(kVariable, "emulate");
  for (const Network& network : {all_layer_kinds(), Network(test::small_residual(), {3, 8, 8})}) {
    const Outcome fp32 = train(network, Precision::kFp32, 1), bf16 = train(network, Precision::kBf16, 1);
    EXPECT_NEAR(bf16.loss, fp32.loss, 0.01 * fp32.loss) << network.name();
    const double error = distance(bf16.gradients, fp32.gradients) / length(fp32.gradients);
    // The error that rounding the weights alone causes; batch normalization amplifies it.
    const Outcome weights = train(network, Precision::kFp32, 1, 1, SgdOptions{}, true);
    const double rounding_error = distance(weights.gradients, fp32.gradients) / length(fp32.gradients);
    EXPECT_LT(error, 4 * rounding_error) << network.name();
    EXPECT_GT(error, 0.5 * rounding_error) << network.name() << ": not everything was rounded";
    EXPECT_LT(error, 0.2) << network.name();
  }
}

TEST(Bf16Engine, LearnsLikeFp32) {
  const Environment emulated(kVariable, "emulate");
  const Network network(test::deeplizard(), {1, 28, 28});
  const Outcome begin = train(network, Precision::kFp32, 1, 1, AdamOptions{});
  const Outcome fp32 = train(network, Precision::kFp32, 12, 1, AdamOptions{});
  const Outcome bf16 = train(network, Precision::kBf16, 12, 1, AdamOptions{});
  EXPECT_LT(fp32.loss, 0.99 * begin.loss);
  // Adam's first steps depend on the signs of gradients, some of which are almost 0.
  EXPECT_NEAR(bf16.loss, fp32.loss, 0.15 * (begin.loss - fp32.loss));
}

TEST(Bf16Engine, SumsOverASingleChannelInFp32) {
  const Environment emulated(kVariable, "emulate");
  const Network network({"one", {test::conv("conv", 10, 28), test::flatten("flatten")}}, {1, 28, 28});
  EXPECT_EQ(train(network, Precision::kBf16, 2), train(network, Precision::kFp32, 2));
}

TEST(Bf16Engine, IsRefusedWithAReasonWhenTurnedOff) {
  const Environment off(kVariable, "off");
  const Network network(test::mlp(), {1, 28, 28});
  EXPECT_THAT([&] { make_engine(network, {.device = {}, .precision = Precision::kBf16}); },
              ThrowsMessage<DeviceError>(
                  HasSubstr("cpu: precision bf16: the environment variable SWEEP_BF16 turns it off")));
  EXPECT_NO_THROW(make_engine(network, EngineOptions()));
  EXPECT_EQ(unavailable_reason(Device()), std::nullopt);
  EXPECT_EQ(list_devices()[0].precisions, std::vector{Precision::kFp32});
  const Environment emulated(kVariable, "emulate");
  EXPECT_EQ(unavailable_reason(Device(), Precision::kBf16), std::nullopt);
  EXPECT_EQ(list_devices()[0].precisions, (std::vector{Precision::kFp32, Precision::kBf16}));
  EXPECT_NE(unavailable_reason({DeviceType::kCuda, 0}, Precision::kBf16), std::nullopt);
}

TEST(Bf16Engine, ReportsMissingHardware) {
  const Environment unset(kVariable, nullptr);
  const auto reason = bf16_unavailable_reason();
  EXPECT_EQ(reason.has_value(), cpu::bf16_hardware_kernels() == nullptr);
  EXPECT_THAT(reason.value_or("no AVX512_BF16"), HasSubstr("no AVX512_BF16"));
}

TEST(Precision, NamesAreReadAndWritten) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16})
    EXPECT_EQ(parse_precision(precision_name(precision)), precision);
  EXPECT_THAT([] { parse_precision("fp16"); },
              ThrowsMessage<ConfigError>("unknown precision \"fp16\"; allowed: fp32, bf16"));
}

}  // namespace
}  // namespace sweep
