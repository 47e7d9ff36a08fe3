// What several devices do, on one: stages that copy from one place of its memory to another, and a group of
// one that exchanges through NCCL. Also on two, if there are two. On GPUs, and on the stand-in for them.

#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/communicator.h"
#include "tests/core/parallel/forwarding_communicator.h"
#include "tests/support/training.h"

namespace sweep::shared_on_device_test {

using namespace test;

#define SKIP_WITHOUT_GROUP(count)                                           \
  if (const auto reason = device_group_unavailable_reason(device(), count)) \
  GTEST_SKIP() << "needs " << (count) << " of the devices: " << *reason

// Whole batches, and one of fewer samples than there are shares.
Training training_of(const NetworkSpec& network, const Shape& input, std::vector<std::string> cuts,
                     std::vector<float> class_weights = {}) {
  return {network,
          input,
          options_with(AdamOptions{}, 0.5, std::move(class_weights)),
          {24, 24, 7, 24},
          std::move(cuts)};
}

const Training kFused = training_of(deeplizard(), {1, 20, 20}, {"conv2", "fc1", "out"}),
               kNormalized =
                   training_of(small_residual(), {3, 8, 8}, {"block1.conv2", "block2.conv1", "out"}),
               kWeighted = training_of(small_residual(), {3, 8, 8}, {}, some_weights());

// In turns, with sums that batch normalization exchanges in the middle of a step, and weights of classes.
const std::pair<Training, Way> kOfGroups[] = {{kFused, {}}, {kWeighted, {.accumulate = 2}}};

EngineOutcome train_as_a_group_of_one(const Training& training, const Way& way) {
  const auto ends = make_thread_group(1);
  const auto engine = make_cuda_replica(network_of(training), options_of(training, way), *ends.front());
  return train(*engine, training);
}

TEST(StagesOnDevice, GiveTheBitsOfOneStage) {
  if (const auto reason = unavailable_reason(device())) GTEST_SKIP() << *reason;
  // Libraries might choose other algorithms for shares.
  const Environment variable("SWEEP_CUDA_KERNELS", "builtin");
  for (const Training& training : {kFused, kNormalized}) {
    const Network network = network_of(training);
    for (const int turns : {1, 3}) {
      const EngineOutcome one = train(training, Way{.accumulate = turns});
      for (int devices = 1; devices <= 2; ++devices) {
        if (unavailable_reason({DeviceType::kCuda, devices - 1})) continue;
        for (const Way& way : {Way{.accumulate = turns, .stages = 4, .micro_batches = 3, .schedule = kEager},
                               Way{.accumulate = turns, .stages = 4},
                               Way{.accumulate = turns, .stages = 4, .micro_batches = 3}}) {
          if (devices == 1 && way.schedule != kEager) break;  // the two orders differ between devices
          const EngineOptions options = options_of(training, way);
          std::vector<Stage> stages = split_into_stages(network, options.parallel, device());
          for (Stage& stage : stages) stage.device.index %= devices;
          const auto engine = make_staged_cuda_engine(network, options, stages);
          EXPECT_TRUE(same_bits(one, train(*engine, training)))
              << network.name() << ", " << way << " on " << devices;
        }
      }
    }
  }
}

// A kernel that joins convolutions with the layers after them takes the micro-batches, but not all samples.
TEST(StagesOnDevice, EvaluateMicroBatchesOfOneStage) {
  if (const auto reason = unavailable_reason(device())) GTEST_SKIP() << *reason;
  const Environment variable("SWEEP_CUDA_KERNELS", "builtin");
  Training training = kFused;
  training.batches = {140};
  EXPECT_TRUE(same_bits(train(training, Way{}), train(training, Way{.micro_batches = 2})));
}

TEST(GroupOnDevice, TrainsAloneAsOneDeviceThatCutsNoBatch) {
  SKIP_WITHOUT_GROUP(1);
  for (const auto& [training, way] : kOfGroups) {
    const EngineOutcome group = train_as_a_group_of_one(training, way);
    EXPECT_EQ(group.trained.samples, 79);
    EXPECT_TRUE(same_bits(group, train_as_a_group_of_one(training, way))) << "once more";
    // In another order of additions.
    const EngineOutcome one = train(training, way);
    ASSERT_EQ(one.parameters.size(), group.parameters.size());
    EXPECT_NEAR(group.trained.loss / one.trained.loss, 1, 1e-4);
    EXPECT_NEAR(group.evaluated.loss / one.evaluated.loss, 1, 1e-3);
    expect_near(group.buffers, one.buffers, 1e-2);
  }
}

TEST(GroupOnDevice, GivesTheSameBitsWithStages) {
  SKIP_WITHOUT_GROUP(1);
  const Environment variable("SWEEP_CUDA_KERNELS", "builtin");
  for (const int turns : {1, 2}) {
    const EngineOutcome one = train_as_a_group_of_one(kNormalized, {.accumulate = turns});
    for (int devices = 1; devices <= 2; ++devices) {
      if (device_group_unavailable_reason(device(), devices)) continue;
      for (const int micro_batches : {1, 2, 20}) {
        const Way way{
            .accumulate = turns,
            .micro_batches = micro_batches,
            .model = {{"stem", device().name()}, {"block2", Device{DeviceType::kCuda, devices - 1}.name()}}};
        EXPECT_TRUE(same_bits(one, train_as_a_group_of_one(kNormalized, way))) << way;
      }
    }
  }
}

TEST(GroupOnDevice, GivesTheSameBitsWithASecondDevice) {
  SKIP_WITHOUT_GROUP(2);
  for (auto [training, way] : kOfGroups) {
    const EngineOutcome alone = train_as_a_group_of_one(training, way);
    way.data = 2;
    EXPECT_TRUE(same_bits(train(training, way), alone));
  }
}

TEST(GroupOnDevice, TellsHowLongItExchangedAndWaitedForTotals) {
  SKIP_WITHOUT_GROUP(1);
  const auto ends = make_thread_group(1);
  DelayedCommunicator group(*ends.front(), std::chrono::milliseconds(20));
  const auto engine = make_cuda_replica(network_of(kFused), options_of(kFused, {}), group);
  EXPECT_EQ(engine->take_communication_seconds(), 0.0);
  take_steps(*engine, kFused);
  EXPECT_GT(engine->take_communication_seconds(), 0.0);
  engine->take_totals();
  EXPECT_GE(engine->take_communication_seconds(), 0.02);
}

}  // namespace sweep::shared_on_device_test
