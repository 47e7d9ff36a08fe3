#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/kernels/cpu/kernels/loss_kernels.h"

namespace sweep::cpu {
namespace {

struct Loss {
  alignas(64) float loss[kLanes];
  alignas(64) std::int32_t predicted[kLanes];
  AlignedBuffer gradient;
};

// All 16 images have the same logits; image i has label i % classes.
Loss loss_of(const std::vector<float>& logits, std::int32_t first_label = 0, float smoothing = 0,
             bool squared = false) {
  AlignedBuffer block(logits.size() * kLanes);
  alignas(64) std::int32_t labels[kLanes];
  alignas(64) float scale[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t c = 0; c < logits.size(); ++c) block.data()[c * kLanes + lane] = logits[c];
    labels[lane] = (first_label + static_cast<std::int32_t>(lane)) % static_cast<std::int32_t>(logits.size());
    scale[lane] = lane == 15 ? 0.0f : 0.5f;
  }
  Loss result;
  result.gradient = AlignedBuffer(block.size());
  if (squared) {
    pointwise_loss({.kind = LossOptions::Kind::kMse}, block.data(), {.labels = labels}, logits.size(), scale,
                   result.loss, result.gradient.data());
    predict_classes(block.data(), logits.size(), result.predicted);
  } else {
    softmax_cross_entropy(block.data(), labels, logits.size(), smoothing, scale, result.loss,
                          result.predicted, result.gradient.data());
  }
  return result;
}

TEST(SoftmaxCrossEntropy, MatchesTheDefinitionInDouble) {
  const std::vector<float> logits = {1.5f, -2.0f, 0.25f, 3.0f, -0.5f};
  const Loss result = loss_of(logits);
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t label = lane % logits.size();
    EXPECT_NEAR(result.loss[lane], std::log(total) - static_cast<double>(logits[label]), 2e-6);
    EXPECT_EQ(result.predicted[lane], 3);
    for (std::size_t c = 0; c < logits.size(); ++c) {
      const double probability = std::exp(static_cast<double>(logits[c])) / total;
      const double expected = lane == 15 ? 0 : 0.5 * (probability - (c == label ? 1 : 0));
      EXPECT_NEAR(result.gradient.data()[c * kLanes + lane], expected, 1e-6);
    }
  }
}

// torch.nn.functional.cross_entropy(torch.tensor([[1.5, -2.0, 0.25, 3.0, -0.5]]), torch.tensor([2]),
// label_smoothing=0.2), in double, and the gradient of half of it.
TEST(SoftmaxCrossEntropy, SmoothedLabelsMatchPyTorch) {
  const Loss result = loss_of({1.5f, -2.0f, 0.25f, 3.0f, -0.5f}, 2, 0.2f);
  EXPECT_NEAR(result.loss[0], 2.9906524362, 2e-6);
  const double gradient[] = {0.0642640788, -0.0174554453, -0.3958579372, 0.3576454008, -0.0085960970};
  for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(result.gradient.data()[c * kLanes], gradient[c], 1e-6);
}

// torch.nn.functional.mse_loss against the one-hot label 2, in double, and the gradient of half of it.
TEST(MeanSquaredError, MatchesPyTorch) {
  const Loss result = loss_of({1.5f, -2.0f, 0.25f, 3.0f, -0.5f}, 2, 0, true);
  EXPECT_NEAR(result.loss[0], 3.2125000000, 2e-6);
  const double gradient[] = {0.3000000000, -0.4000000000, -0.1500000000, 0.6000000000, -0.1000000000};
  for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(result.gradient.data()[c * kLanes], gradient[c], 1e-6);
  EXPECT_EQ(result.predicted[0], 3);
  EXPECT_EQ(result.gradient.data()[15], 0);
}

TEST(SoftmaxCrossEntropy, HugeLogitsDoNotOverflow) {
  const Loss result = loss_of({1000.0f, -1000.0f, 999.0f});
  EXPECT_NEAR(result.loss[0], std::log(1 + std::exp(-1.0)), 1e-4);
  EXPECT_NEAR(result.loss[1], 2000 + std::log(1 + std::exp(-1.0)), 1e-3);
}

TEST(SoftmaxCrossEntropy, TheFirstOfEqualLogitsIsPredicted) {
  EXPECT_EQ(loss_of({1, 2, 2, 0}).predicted[0], 1);
}

TEST(SoftmaxCrossEntropy, ANaNOrInfinityMakesTheLossNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const auto& logits : {std::vector<float>{nan, 0, 1}, {0, nan, 1}, {0, 1, nan}, {infinity, 0, 1}}) {
    EXPECT_TRUE(std::isnan(loss_of(logits).loss[0]));
    EXPECT_TRUE(std::isnan(loss_of(logits, 1).loss[0]));
  }
}

TEST(SoftmaxCrossEntropy, OneClassHasNoLoss) { EXPECT_EQ(loss_of({5}).loss[3], 0); }

}  // namespace
}  // namespace sweep::cpu
