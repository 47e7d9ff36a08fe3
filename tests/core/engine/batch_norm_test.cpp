// Networks that train in phases, because batch normalization looks at the whole batch.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

constexpr std::size_t kPixels = 3 * 8 * 8;

Network residual_network() { return Network(test::small_residual(), {3, 8, 8}); }

std::unique_ptr<Engine> engine_for(const Network& network, std::size_t batch_size, int threads = 1) {
  EngineOptions options{.device = test::device()};
  options.threads = threads;
  options.batch_size = batch_size;
  options.optimizer = AdamOptions{};
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

struct Outcome {
  std::vector<float> parameters, gradients, buffers;
  double loss = 0;
};

Outcome train_three_steps(std::size_t images, int threads, bool profiled = false,
                          const Network& network = residual_network()) {
  const auto engine = engine_for(network, images, threads);
  const test::OwnedBatch batch = test::random_batch(images, element_count(network.input()), 10, 11);
  for (int step = 0; step < 3; ++step) {
    if (profiled) engine->profile(batch.view());
    engine->train(batch.view(), 0.01);
  }
  return {engine->parameters(), engine->gradients(), engine->buffers(), engine->take_totals().loss};
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.buffers, b.buffers);
  EXPECT_EQ(a.loss, b.loss);
}

class BatchNormThreads : public testing::TestWithParam<std::size_t> {};

TEST_P(BatchNormThreads, GiveTheSameBits) {
  SKIP_UNLESS_CPU();
  const Outcome one = train_three_steps(GetParam(), 1);
  for (const int threads : {2, 3, 5, 8}) {
    SCOPED_TRACE(threads);
    expect_same_bits(train_three_steps(GetParam(), threads), one);
  }
}

// Enough channels for Winograd's algorithm, with stride 1 and 2.
TEST(BatchNorm, ThreadsGiveTheSameBitsWithWideConvolutions) {
  SKIP_UNLESS_CPU();
  const Network network(test::small_residual(16), {3, 16, 16});
  const Outcome one = train_three_steps(50, 1, false, network);
  for (const int threads : {2, 3, 4}) {
    SCOPED_TRACE(threads);
    expect_same_bits(train_three_steps(50, threads, false, network), one);
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, BatchNormThreads, testing::Values(2, 16, 17, 100, 333));

TEST(BatchNorm, ProfileChangesNoBitOfTheTraining) {
  SKIP_UNLESS_CPU();
  expect_same_bits(train_three_steps(100, 2, true), train_three_steps(100, 2));
}

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

TEST(BatchNorm, SavedStateContinuesWithTheSameBits) {
  const Network network = residual_network();
  const test::OwnedBatch batch = test::random_batch(60, kPixels, 10, 12);
  const auto whole = engine_for(network, 60), first = engine_for(network, 60),
             second = engine_for(network, 60, 2);
  for (int i = 0; i < 5; ++i) whole->train(batch.view(), 0.01);
  for (int i = 0; i < 2; ++i) first->train(batch.view(), 0.01);
  second->set_parameters(first->parameters());
  second->set_buffers(first->buffers());
  second->set_optimizer_state(first->optimizer_state(), first->step_count());
  for (int i = 0; i < 3; ++i) second->train(batch.view(), 0.01);
  EXPECT_EQ(second->parameters(), whole->parameters());
  EXPECT_EQ(second->buffers(), whole->buffers());
}

TEST(BatchNorm, WrongNumberOfBuffersIsAnError) {
  const Network network = residual_network();
  EXPECT_THROW(engine_for(network, 4)->set_buffers(std::vector<float>(3)), ShapeError);
}

// PyTorch refuses to train on one value per channel, and then a sweep whose last batch has one sample fails.
TEST(BatchNorm, OneValuePerChannelTrainsAndStaysFinite) {
  const Network network({"n", {{"bn", "batch_norm2d"}, test::flatten("f"), test::linear("out", 2)}},
                        {3, 1, 1});
  const auto engine = engine_for(network, 1);
  engine->train(test::random_batch(1, 3, 2, 1).view(), 0.01);
  for (const float x : engine->parameters()) EXPECT_TRUE(std::isfinite(x));
  for (const float x : engine->buffers()) EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace sweep
