// One GPU alone that trains through NCCL as a group of one, and two if there are two: on GPUs, and on the
// stand-in for them.
#include <gtest/gtest.h>

#include <cmath>

#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/thread_group.h"
#include "tests/core/parallel/delayed_communicator.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

#define SKIP_WITHOUT_DEVICES(count)                                               \
  if (const auto reason = device_group_unavailable_reason(test::device(), count)) \
  GTEST_SKIP() << "needs " << (count) << " of the devices: " << *reason

struct Trained {
  std::vector<float> parameters, gradients, buffers, outputs;
  std::vector<std::vector<float>> optimizer;
  double loss = 0, evaluated = 0;
  std::int64_t correct = 0, samples = 0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

constexpr std::size_t kBatch = 40;

EngineOptions options_of(int devices) {
  EngineOptions options{.device = test::device(), .batch_size = kBatch};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.parallel.data = devices;
  return options;
}

Trained train(Engine& engine, const Network& network) {
  engine.set_parameters(initial_parameters(network, 3));
  const test::OwnedBatch owned = test::random_batch(kBatch, element_count(network.input()), 10, 11);
  for (const std::size_t size : {kBatch, kBatch, std::size_t{7}, kBatch}) {
    Batch batch = owned.view();
    batch.rows = batch.rows.first(size);
    engine.train(batch, 0.01);
  }
  Trained trained;
  const Totals totals = engine.take_totals();
  trained.loss = totals.loss;
  trained.correct = totals.correct;
  trained.samples = totals.samples;
  trained.outputs.resize(kBatch * 10);
  engine.evaluate_and_predict(owned.view(), trained.outputs);
  trained.evaluated = engine.take_totals().loss;
  trained.parameters = engine.parameters();
  trained.gradients = engine.gradients();
  trained.buffers = engine.buffers();
  for (OptimizerState& array : engine.optimizer_state()) trained.optimizer.push_back(std::move(array.values));
  return trained;
}

Network network() { return Network(test::deeplizard(), {1, 28, 28}); }
// 1.1 MB of parameters.
Network wide() {
  const NetworkSpec spec{
      "wide",
      {test::flatten("flatten"), test::linear("fc", 1400), test::relu("relu"), test::linear("out", 10)}};
  return Network(spec, {3, 8, 8});
}
Network normalized() { return Network(test::small_residual(), {3, 8, 8}); }

Trained train_as_a_group_of_one(const Network& trained, const EngineOptions& options) {
  const auto ends = make_thread_group(1);
  const auto engine = make_cuda_replica(trained, options, *ends.front());
  return train(*engine, trained);
}

Trained train_as_a_group_of_one() { return train_as_a_group_of_one(network(), options_of(1)); }

// In turns, with sums that batch normalization exchanges in the middle of a step, and weights of classes.
EngineOptions normalized_options(int devices) {
  EngineOptions options = options_of(devices);
  options.accumulate = 2;
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  return options;
}

TEST(ReplicaOnDevice, TrainsAloneAsAGroupOfOne) {
  SKIP_WITHOUT_DEVICES(1);
  const Trained group = train_as_a_group_of_one();
  EXPECT_EQ(group.samples, 127);
  EXPECT_TRUE(group == train_as_a_group_of_one()) << "once more";
  // One device that does not cut the batch adds in another order.
  const Network trained = network();
  const Trained one = train(*make_engine(trained, options_of(1)), trained);
  ASSERT_EQ(one.parameters.size(), group.parameters.size());
  EXPECT_NEAR(group.loss / one.loss, 1, 1e-4);
  EXPECT_NEAR(group.evaluated / one.evaluated, 1, 1e-3);
}

// With gradients that are exchanged while the next part is computed.
TEST(ReplicaOnDevice, TrainsAWideNetworkPartByPart) {
  SKIP_WITHOUT_DEVICES(1);
  const Network trained = wide();
  const Trained group = train_as_a_group_of_one(trained, options_of(1));
  EXPECT_TRUE(group == train_as_a_group_of_one(trained, options_of(1))) << "once more";
  const Trained one = train(*make_engine(trained, options_of(1)), trained);
  EXPECT_NEAR(group.loss / one.loss, 1, 1e-4);
  EXPECT_NEAR(group.evaluated / one.evaluated, 1, 1e-3);
}

TEST(ReplicaOnDevice, NormalizesTurnsAsOneDeviceDoes) {
  SKIP_WITHOUT_DEVICES(1);
  const Network trained = normalized();
  const Trained group = train_as_a_group_of_one(trained, normalized_options(1));
  EXPECT_TRUE(group == train_as_a_group_of_one(trained, normalized_options(1))) << "once more";
  const Trained one = train(*make_engine(trained, normalized_options(1)), trained);
  EXPECT_NEAR(group.loss / one.loss, 1, 1e-4);
  EXPECT_NEAR(group.evaluated / one.evaluated, 1, 1e-3);
  ASSERT_EQ(group.buffers.size(), one.buffers.size());
  for (std::size_t i = 0; i < one.buffers.size(); ++i)
    EXPECT_NEAR(group.buffers[i], one.buffers[i], 1e-2 * (1 + std::abs(one.buffers[i]))) << i;
}

TEST(ReplicaOnDevice, TellsHowLongItExchanged) {
  SKIP_WITHOUT_DEVICES(1);
  const Network trained = network();
  const auto ends = make_thread_group(1);
  const auto engine = make_cuda_replica(trained, options_of(1), *ends.front());
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
  train(*engine, trained);
  EXPECT_GT(engine->take_communication_seconds(), 0.0);
}

TEST(ReplicaOnDevice, CountsHowLongTotalsAreWaitedFor) {
  SKIP_WITHOUT_DEVICES(1);
  const Network trained = network();
  const auto ends = make_thread_group(1);
  test::DelayedCommunicator group(*ends.front(), std::chrono::milliseconds(20));
  const auto engine = make_cuda_replica(trained, options_of(1), group);
  engine->take_communication_seconds();
  engine->take_totals();
  EXPECT_GE(engine->take_communication_seconds(), 0.02);
}

TEST(ReplicaOnDevice, GivesTheSameBitsWithASecondDevice) {
  SKIP_WITHOUT_DEVICES(2);
  const Network trained = network();
  EXPECT_TRUE(train(*make_engine(trained, options_of(2)), trained) == train_as_a_group_of_one());
  EXPECT_TRUE(train(*make_engine(wide(), options_of(2)), wide()) ==
              train_as_a_group_of_one(wide(), options_of(1)));
  EXPECT_TRUE(train(*make_engine(normalized(), normalized_options(2)), normalized()) ==
              train_as_a_group_of_one(normalized(), normalized_options(1)));
}

}  // namespace
}  // namespace sweep
