// Stages on one GPU, which copy their activations from one place in its memory to another, and on two if
// there are two: on GPUs, and on the stand-in for them.
#include <gtest/gtest.h>

#include "core/kernels/cuda/cuda_engine.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

struct Trained {
  std::vector<float> parameters, gradients, buffers, outputs;
  double loss = 0;
  std::int64_t correct = 0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

constexpr std::size_t kBatch = 40;

EngineOptions options_of(int micro_batches, PipelineSchedule schedule) {
  EngineOptions options{.device = test::device(), .batch_size = kBatch};
  options.optimizer = AdamOptions{};
  options.clip_norm = 0.5;
  if (micro_batches > 0)
    options.parallel.pipeline = PipelineOptions{
        .stages = 0, .first_layers = {}, .micro_batches = micro_batches, .schedule = schedule};
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
  trained.outputs.resize(kBatch * 10);
  engine.evaluate_and_predict(owned.view(), trained.outputs);
  const Totals totals = engine.take_totals();
  trained.loss = totals.loss;
  trained.correct = totals.correct;
  trained.parameters = engine.parameters();
  trained.gradients = engine.gradients();
  trained.buffers = engine.buffers();
  return trained;
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
    const Trained one = train(*make_cuda_engine(network, options_of(0, {})), network);
    const std::vector<Stage> stages = stages_of(network, cuts, devices);
    ASSERT_EQ(stages.size(), cuts.size() + 1);
    for (const int parts : {0, 3}) {
      for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
        SCOPED_TRACE(testing::Message() << network.name() << ", " << parts << " parts");
        EXPECT_TRUE(one ==
                    train(*make_staged_cuda_engine(network, options_of(parts, schedule), stages), network));
      }
    }
  }
}

TEST(StagedOnDevice, GivesTheBitsOfOneStage) {
  if (const auto reason = unavailable_reason(test::device())) GTEST_SKIP() << *reason;
  expect_the_bits_of_one_stage(1);
}

TEST(StagedOnDevice, GivesTheBitsOfOneStageWithASecondDevice) {
  if (const auto reason = unavailable_reason({DeviceType::kCuda, 1}))
    GTEST_SKIP() << "needs two: " << *reason;
  expect_the_bits_of_one_stage(2);
}

}  // namespace
}  // namespace sweep
