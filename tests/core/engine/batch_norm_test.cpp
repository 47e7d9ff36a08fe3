// Networks that train in phases, because batch normalization looks at the whole batch.

#include "tests/support/training.h"

#include "tests/support/test.h"

namespace sweep::batch_norm_test {

constexpr std::size_t kPixels = 3 * 8 * 8;

Network residual_network() { return Network(test::small_residual(), {3, 8, 8}); }

using test::engine_for;

TEST(BatchNorm, EvaluationUsesTheRunningStatisticsSoThatSamplesDoNotSeeEachOther) {
  const Network network = residual_network();
  const auto engine = engine_for(network, 40);
  const test::OwnedBatch batch = test::random_batch(40, kPixels, 10, 5);
  engine->train(batch.view(), 0.01);
  std::vector<float> together(400), alone(10);
  engine->predict(batch.view(), together);
  const std::vector<float> buffers = engine->buffers();
  const Batch last{batch.pixels, batch.labels, std::span(batch.indices).last(1)};
  engine->predict(last, alone);
  // A library may choose another algorithm for another batch size, and round differently.
  const std::string kernels = engine->kernels();
  const bool same_kernels = kernels.empty() || kernels == "builtin";
  for (std::size_t c = 0; c < 10; ++c) {
    if (same_kernels) {
      EXPECT_EQ(alone[c], together[390 + c]);
    } else {
      EXPECT_NEAR(alone[c], together[390 + c], 1e-4f * (1 + std::abs(alone[c])));
    }
  }
  EXPECT_EQ(engine->buffers(), buffers);
}

TEST(BatchNorm, BuffersStartAsPyTorchsAndMoveWithTraining) {
  const Network network = residual_network();
  const auto engine = engine_for(network, 40);
  EXPECT_EQ(engine->buffers(), initial_buffers(network));
  engine->train(test::random_batch(40, kPixels, 10, 5).view(), 0.01);
  EXPECT_NE(engine->buffers(), initial_buffers(network));
}

TEST(BatchNorm, WrongNumberOfBuffersIsAnError) {
  const Network network = residual_network();
  EXPECT_THROW(engine_for(network, 4)->set_buffers(std::vector<float>(3)), ShapeError);
}

// PyTorch refuses to train on one value per channel, and then a sweep whose last batch has one sample fails.
TEST(BatchNorm, OneValuePerChannelTrainsAndLeavesTheRunningVariance) {
  const Network network({"n", {{"bn", "batch_norm2d"}, test::flatten("f"), test::linear("out", 2)}},
                        {3, 1, 1});
  const auto engine = engine_for(network, 1);
  engine->train(test::random_batch(1, 3, 2, 1).view(), 0.01);
  for (const float x : engine->parameters()) EXPECT_TRUE(std::isfinite(x));
  const std::vector<float> buffers = engine->buffers();
  for (const float x : buffers) EXPECT_TRUE(std::isfinite(x));
  const Parameter& variance = network.buffers().back();
  ASSERT_EQ(variance.name, "bn.running_var");
  for (std::size_t c = 0; c < variance.count; ++c) EXPECT_EQ(buffers[variance.offset + c], 1);
}

}  // namespace sweep::batch_norm_test
