// One GPU alone that trains through NCCL as a group of one, and two if there are two: on GPUs, and on the
// stand-in for them.
#include <gtest/gtest.h>

#include <cmath>

#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/thread_group.h"
#include "tests/core/kernels/cuda/on_device.h"
#include "tests/core/parallel/delayed_communicator.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::EngineOutcome;
using test::train_on_device;

#define SKIP_WITHOUT_DEVICES(count)                                               \
  if (const auto reason = device_group_unavailable_reason(test::device(), count)) \
  GTEST_SKIP() << "needs " << (count) << " of the devices: " << *reason

EngineOptions options_of(int devices) {
  EngineOptions options = test::on_device();
  options.parallel.data = devices;
  return options;
}

Network network() { return Network(test::deeplizard(), {1, 28, 28}); }
Network normalized() { return Network(test::small_residual(), {3, 8, 8}); }

EngineOutcome train_as_a_group_of_one(const Network& trained, const EngineOptions& options) {
  const auto ends = make_thread_group(1);
  const auto engine = make_cuda_replica(trained, options, *ends.front());
  return train_on_device(*engine, trained);
}

EngineOutcome train_as_a_group_of_one() { return train_as_a_group_of_one(network(), options_of(1)); }

// In turns, with sums that batch normalization exchanges in the middle of a step, and weights of classes.
EngineOptions normalized_options(int devices) {
  EngineOptions options = options_of(devices);
  options.accumulation_steps = 2;
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  return options;
}

TEST(ReplicaOnDevice, TrainsAloneAsAGroupOfOne) {
  SKIP_WITHOUT_DEVICES(1);
  const EngineOutcome group = train_as_a_group_of_one();
  EXPECT_EQ(group.trained.samples, 127);
  EXPECT_TRUE(test::same_bits(group, train_as_a_group_of_one())) << "once more";
  // One device that does not cut the batch adds in another order.
  const Network trained = network();
  const EngineOutcome one = train_on_device(*make_engine(trained, options_of(1)), trained);
  ASSERT_EQ(one.parameters.size(), group.parameters.size());
  EXPECT_NEAR(group.trained.loss / one.trained.loss, 1, 1e-4);
  EXPECT_NEAR(group.evaluated.loss / one.evaluated.loss, 1, 1e-3);
}

TEST(ReplicaOnDevice, NormalizesTurnsAsOneDeviceDoes) {
  SKIP_WITHOUT_DEVICES(1);
  const Network trained = normalized();
  const EngineOutcome group = train_as_a_group_of_one(trained, normalized_options(1));
  EXPECT_TRUE(test::same_bits(group, train_as_a_group_of_one(trained, normalized_options(1)))) << "once more";
  const EngineOutcome one = train_on_device(*make_engine(trained, normalized_options(1)), trained);
  EXPECT_NEAR(group.trained.loss / one.trained.loss, 1, 1e-4);
  EXPECT_NEAR(group.evaluated.loss / one.evaluated.loss, 1, 1e-3);
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
  train_on_device(*engine, trained);
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
  EXPECT_TRUE(test::same_bits(train_on_device(*make_engine(trained, options_of(2)), trained),
                              train_as_a_group_of_one()));
  EXPECT_TRUE(
      test::same_bits(train_on_device(*make_engine(normalized(), normalized_options(2)), normalized()),
                      train_as_a_group_of_one(normalized(), normalized_options(1))));
}

}  // namespace
}  // namespace sweep
