// Stages on one GPU, which copy their activations from one place in its memory to another, and on two if
// there are two: on GPUs, and on the stand-in for them.
#include <gtest/gtest.h>

#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/thread_group.h"
#include "tests/core/kernels/cuda/on_device.h"
#include "tests/support/environment.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using test::EngineOutcome;
using test::train_on_device;

EngineOptions options_of(int micro_batches, PipelineSchedule schedule) {
  EngineOptions options = test::on_device();
  if (micro_batches > 0)
    options.parallel.pipeline = PipelineOptions{
        .stages = 0, .first_layers = {}, .micro_batches = micro_batches, .schedule = schedule};
  return options;
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

void expect_the_bits_of_one_stage(int devices) {
  // Libraries might choose other algorithms for parts.
  const test::Environment variable("SWEEP_CUDA_KERNELS", "own");
  const std::pair<Network, std::vector<std::string>> trainings[] = {
      {Network(test::deeplizard(), {1, 28, 28}), {"conv2", "fc1", "out"}},
      {Network(test::small_residual(), {3, 8, 8}), {"block1.conv2", "block2.conv1", "out"}}};
  for (const auto& [network, cuts] : trainings) {
    const EngineOutcome one = train_on_device(*make_cuda_engine(network, options_of(0, {})), network);
    const std::vector<Stage> stages = stages_of(network, cuts, devices);
    ASSERT_EQ(stages.size(), cuts.size() + 1);
    for (const int parts : {0, 3}) {
      for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
        SCOPED_TRACE(testing::Message() << network.name() << ", " << parts << " parts");
        EXPECT_TRUE(test::same_bits(
            one, train_on_device(*make_staged_cuda_engine(network, options_of(parts, schedule), stages),
                                 network)));
      }
    }
  }
}

TEST(StagedOnDevice, GivesTheBitsOfOneStage) {
  if (const auto reason = unavailable_reason(test::device())) GTEST_SKIP() << *reason;
  expect_the_bits_of_one_stage(1);
}

// A group of one, which exchanges gradients and sums through NCCL, of `devices` devices with a stage each.
void expect_the_bits_of_a_group_without_stages(int devices) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "own");
  const Network network(test::small_residual(), {3, 8, 8});
  const auto trained = [&](int micro_batches, int accumulate) {
    EngineOptions options = options_of(micro_batches, PipelineSchedule::kGpipe);
    options.accumulation_steps = accumulate;
    if (micro_batches > 0) {
      const Device last{DeviceType::kCuda, devices - 1};
      options.parallel.model = {{"stem", test::device().name()}, {"block2", last.name()}};
    }
    const auto ends = make_thread_group(1);
    const auto engine = make_cuda_replica(network, options, *ends.front());
    return train_on_device(*engine, network);
  };
  for (const int accumulate : {1, 2}) {
    const EngineOutcome one = trained(0, accumulate);
    for (const int micro_batches : {1, 2, 20})
      EXPECT_TRUE(test::same_bits(one, trained(micro_batches, accumulate)))
          << micro_batches << ", " << accumulate;
  }
}

TEST(StagedOnDevice, GivesTheBitsOfAGroupWithoutStages) {
  if (const auto reason = device_group_unavailable_reason(test::device(), 1)) GTEST_SKIP() << *reason;
  expect_the_bits_of_a_group_without_stages(1);
}

TEST(StagedOnDevice, GivesTheBitsOfAGroupWithoutStagesWithASecondDevice) {
  if (const auto reason = device_group_unavailable_reason(test::device(), 2)) GTEST_SKIP() << *reason;
  expect_the_bits_of_a_group_without_stages(2);
}

TEST(StagedOnDevice, GivesTheBitsOfOneStageInTurns) {
  if (const auto reason = unavailable_reason(test::device())) GTEST_SKIP() << *reason;
  const test::Environment variable("SWEEP_CUDA_KERNELS", "own");
  const Network network(test::small_residual(), {3, 8, 8});
  EngineOptions one = options_of(0, {}), staged = options_of(3, PipelineSchedule::kOneForwardOneBackward);
  one.accumulation_steps = staged.accumulation_steps = 3;
  const std::vector<Stage> stages = stages_of(network, {"block1.conv2", "block2.conv1", "out"}, 1);
  EXPECT_TRUE(test::same_bits(train_on_device(*make_cuda_engine(network, one), network),
                              train_on_device(*make_staged_cuda_engine(network, staged, stages), network)));
}

TEST(StagedOnDevice, GivesTheBitsOfOneStageWithASecondDevice) {
  if (const auto reason = unavailable_reason({DeviceType::kCuda, 1}))
    GTEST_SKIP() << "needs two: " << *reason;
  expect_the_bits_of_one_stage(2);
}

}  // namespace
}  // namespace sweep
