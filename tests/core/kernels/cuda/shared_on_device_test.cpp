// What several devices do, on one: stages that copy from one place of its memory to another, and a group of
// one that exchanges through NCCL. Also on two, if there are two. On GPUs, and on the stand-in for them.
#include <gtest/gtest.h>

#include <cmath>

#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/thread_group.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/batch.h"
#include "tests/support/engine_outcome.h"
#include "tests/support/environment.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::EngineOutcome;

#define SKIP_WITHOUT_GROUP(count)                                                 \
  if (const auto reason = device_group_unavailable_reason(test::device(), count)) \
  GTEST_SKIP() << "needs " << (count) << " of the devices: " << *reason

Network fused() { return {test::deeplizard(), {1, 20, 20}}; }
Network normalized() { return {test::small_residual(), {3, 8, 8}}; }

EngineOptions options_of(int accumulation_steps = 1, int micro_batches = 0,
                         PipelineSchedule schedule = PipelineSchedule::kGpipe) {
  EngineOptions options{.device = test::device(), .batch_size = 24};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  options.accumulation_steps = accumulation_steps;
  if (micro_batches > 0)
    options.parallel.pipeline = PipelineOptions{
        .stages = 0, .first_layers = {}, .micro_batches = micro_batches, .schedule = schedule};
  return options;
}

// In turns, with sums that batch normalization exchanges in the middle of a step, and weights of classes.
EngineOptions weighted_options() {
  EngineOptions options = options_of(2);
  options.loss.class_weights = {0.1F, 5, 1, 0.5F, 2, 0.5F, 3, 0.25F, 8, 1};
  return options;
}

test::OwnedBatch batch_of(const Network& network) {
  return test::random_batch(24, element_count(network.input()), 10, 11);
}

// Whole batches, and one of fewer samples than there are shares.
void take_steps(Engine& engine, const Network& network) {
  constexpr std::size_t kSizes[] = {24, 24, 7, 24};
  engine.set_parameters(initial_parameters(network, 3));
  test::train_steps(engine, batch_of(network).view(), kSizes);
}

EngineOutcome train(Engine& engine, const Network& network) {
  take_steps(engine, network);
  return test::outcome_of(engine, network, batch_of(network).view());
}

EngineOutcome train_as_a_group_of_one(const Network& network, const EngineOptions& options) {
  const auto ends = make_thread_group(1);
  return train(*make_cuda_replica(network, options, *ends.front()), network);
}

// Stages that begin with these layers, on `devices` devices in turns.
std::vector<Stage> stages_of(const Network& network, const std::vector<std::string>& first_layers,
                             int devices) {
  std::vector<Stage> stages = {{0, 0, test::device()}};
  for (std::size_t layer = 0; layer < network.layers().size(); ++layer) {
    if (stages.size() <= first_layers.size() &&
        network.layers()[layer].name == first_layers[stages.size() - 1])
      stages.push_back({layer, 0, {test::device().type, static_cast<int>(stages.size()) % devices}});
    stages.back().end_layer = layer + 1;
  }
  return stages;
}

TEST(StagesOnDevice, GiveTheBitsOfOneStage) {
  if (const auto reason = unavailable_reason(test::device())) GTEST_SKIP() << *reason;
  // Libraries might choose other algorithms for shares.
  const test::Environment variable("SWEEP_CUDA_KERNELS", "builtin");
  const std::pair<Network, std::vector<std::string>> trainings[] = {
      {fused(), {"conv2", "fc1", "out"}}, {normalized(), {"block1.conv2", "block2.conv1", "out"}}};
  for (const auto& [network, cuts] : trainings) {
    for (const int turns : {1, 3}) {
      const EngineOutcome one = train(*make_cuda_engine(network, options_of(turns)), network);
      for (int devices = 1; devices <= 2; ++devices) {
        if (unavailable_reason({DeviceType::kCuda, devices - 1})) continue;
        const std::vector<Stage> stages = stages_of(network, cuts, devices);
        ASSERT_EQ(stages.size(), cuts.size() + 1);
        for (const auto& options : {options_of(turns), options_of(turns, 3),
                                    options_of(turns, 3, PipelineSchedule::kOneForwardOneBackward)}) {
          const auto engine = make_staged_cuda_engine(network, options, stages);
          EXPECT_TRUE(test::same_bits(one, train(*engine, network)))
              << network.name() << " in " << turns << " turns on " << devices;
        }
      }
    }
  }
}

TEST(GroupOnDevice, TrainsAloneAsOneDeviceThatCutsNoBatch) {
  SKIP_WITHOUT_GROUP(1);
  const std::pair<Network, EngineOptions> trainings[] = {{fused(), options_of()},
                                                         {normalized(), weighted_options()}};
  for (const auto& [network, options] : trainings) {
    const EngineOutcome group = train_as_a_group_of_one(network, options);
    EXPECT_EQ(group.trained.samples, 79);
    EXPECT_TRUE(test::same_bits(group, train_as_a_group_of_one(network, options))) << "once more";
    // In another order of additions.
    const EngineOutcome one = train(*make_engine(network, options), network);
    ASSERT_EQ(one.parameters.size(), group.parameters.size());
    EXPECT_NEAR(group.trained.loss / one.trained.loss, 1, 1e-4);
    EXPECT_NEAR(group.evaluated.loss / one.evaluated.loss, 1, 1e-3);
    ASSERT_EQ(group.buffers.size(), one.buffers.size());
    for (std::size_t i = 0; i < one.buffers.size(); ++i)
      EXPECT_NEAR(group.buffers[i], one.buffers[i], 1e-2 * (1 + std::abs(one.buffers[i]))) << i;
  }
}

TEST(GroupOnDevice, GivesTheSameBitsWithStages) {
  SKIP_WITHOUT_GROUP(1);
  const test::Environment variable("SWEEP_CUDA_KERNELS", "builtin");
  for (const int turns : {1, 2}) {
    const EngineOutcome one = train_as_a_group_of_one(normalized(), options_of(turns));
    for (int devices = 1; devices <= 2; ++devices) {
      if (device_group_unavailable_reason(test::device(), devices)) continue;
      for (const int micro_batches : {1, 2, 20}) {
        EngineOptions options = options_of(turns, micro_batches);
        options.parallel.model = {{"stem", test::device().name()},
                                  {"block2", Device{DeviceType::kCuda, devices - 1}.name()}};
        EXPECT_TRUE(test::same_bits(one, train_as_a_group_of_one(normalized(), options)))
            << micro_batches << " micro-batches in " << turns << " turns on " << devices;
      }
    }
  }
}

TEST(GroupOnDevice, GivesTheSameBitsWithASecondDevice) {
  SKIP_WITHOUT_GROUP(2);
  const std::pair<Network, EngineOptions> trainings[] = {{fused(), options_of()},
                                                         {normalized(), weighted_options()}};
  for (const auto& [network, options] : trainings) {
    EngineOptions two = options;
    two.parallel.data = 2;
    EXPECT_TRUE(test::same_bits(train(*make_engine(network, two), network),
                                train_as_a_group_of_one(network, options)));
  }
}

TEST(GroupOnDevice, TellsHowLongItExchangedAndWaitedForTotals) {
  SKIP_WITHOUT_GROUP(1);
  const Network network = fused();
  const auto ends = make_thread_group(1);
  test::DelayedCommunicator group(*ends.front(), std::chrono::milliseconds(20));
  const auto engine = make_cuda_replica(network, options_of(), group);
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
  take_steps(*engine, network);
  EXPECT_GT(engine->take_communication_seconds(), 0.0);
  engine->take_totals();
  EXPECT_GE(engine->take_communication_seconds(), 0.02);
}

}  // namespace
}  // namespace sweep
