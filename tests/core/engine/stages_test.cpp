// Which layers are a stage, and where it is computed.
#include "core/engine/stages.h"

#include "tests/support/test.h"
#include "tests/support/test_networks.h"

namespace sweep::stages_test {

Network deeplizard() { return {test::deeplizard(), {1, 28, 28}}; }

// "conv1 cpu, fc1 cpu:1": the first layer of each stage, and its device.
std::string stages_text(const Network& network, const ParallelOptions& options, const Device& device = {}) {
  std::string text;
  std::size_t end = 0;
  for (const Stage& stage : split_into_stages(network, options, device)) {
    EXPECT_EQ(stage.first_layer, end);
    end = stage.end_layer;
    text += (text.empty() ? "" : ", ") + network.layers()[stage.first_layer].name + " " + stage.device.name();
  }
  EXPECT_EQ(end, network.layers().size());
  return text;
}

ParallelOptions model(std::vector<LayerPlacement> placements) {
  ParallelOptions options;
  options.model = std::move(placements);
  return options;
}

ParallelOptions pipeline(int stages, std::vector<std::string> first_layers = {}) {
  ParallelOptions options;
  options.pipeline = PipelineOptions{.stages = stages, .first_layers = std::move(first_layers)};
  return options;
}

TEST(Stages, FollowTheOptions) {
  const Network network = deeplizard(), residual(test::small_residual(), {3, 8, 8});
  const Device fourth{DeviceType::kCuda, 3}, second{DeviceType::kCuda, 1};
  EXPECT_EQ(stages_text(network, {}, fourth), "conv1 cuda:3");
  EXPECT_EQ(stages_text(network, model({{"conv*", "cpu:0"}, {"fc*", "cpu:1"}})), "conv1 cpu, fc1 cpu:1");
  EXPECT_EQ(stages_text(network, model({{"conv2", "cpu:1"}, {"*", "cpu:0"}})),
            "conv1 cpu, conv2 cpu:1, relu2 cpu")
      << "the first pattern that fits";
  EXPECT_EQ(stages_text(network, model({{"conv1", "cpu:0"}, {"conv2", "cpu:1"}, {"fc1", "cpu:0"}})),
            "conv1 cpu, conv2 cpu:1, fc1 cpu")
      << "a device that comes twice";
  EXPECT_EQ(stages_text(residual, model({{"stem", "cpu:0"}, {"block2", "cpu:1"}})),
            "stem cpu, block2.conv1 cpu:1")
      << "layers inside of others by the outer name";
  EXPECT_EQ(stages_text(network, pipeline(0, {"conv2", "fc1"}), second),
            "conv1 cuda:1, conv2 cuda:2, fc1 cuda:3");
  // Forward and backward, a sample takes 345,600 operations in conv1, 691,200 in conv2, 185,040 after them.
  EXPECT_EQ(stages_text(network, pipeline(2)), "conv1 cpu, conv2 cpu:1");
  EXPECT_EQ(stages_text(network, pipeline(3)), "conv1 cpu, conv2 cpu:1, fc1 cpu:2");
  EXPECT_EQ(stages_text(network, pipeline(1)), "conv1 cpu");
  EXPECT_EQ(split_into_stages(network, pipeline(5), {}).size(), 5u);
}

TEST(Stages, OfAReplicaAreOnDevicesBehindThoseOfTheOneBefore) {
  const auto devices_of = [](const ParallelOptions& options, int replica) {
    std::vector<int> devices;
    for (const Stage& stage :
         stages_of_replica(split_into_stages(deeplizard(), options, {DeviceType::kCuda, 1}), replica))
      devices.push_back(stage.device.index);
    return devices;
  };
  EXPECT_THAT(devices_of({}, 2), ElementsAre(3));
  EXPECT_THAT(devices_of(pipeline(3), 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(devices_of(pipeline(3), 2), ElementsAre(7, 8, 9));
  // Those between two devices are left out in each set.
  EXPECT_THAT(devices_of(model({{"conv1", "cuda:3"}, {"conv2", "cuda:1"}, {"out", "cuda:3"}}), 1),
              ElementsAre(6, 4, 6));
}

TEST(Stages, RefuseOptionsThatDoNotFitTheNetwork) {
  const std::pair<ParallelOptions, const char*> refused[] = {
      {model({{"conv*", "cpu:0"}, {"fx1", "cpu:1"}}), "parallel.model: no layer fits \"fx1\""},
      {model({{"conv*", "cpu:0"}, {"fx1", "cpu:1"}}), "did you mean \"fc1\"?"},
      {model({{"*", "cpu:0"}, {"out", "cpu:1"}}),
       "parallel.model: every layer that fits \"out\" also fits an earlier pattern, which counts; want "
       "\"out\" "
       "before it"},
      {pipeline(6),
       "parallel.pipeline.stages: got 6, want at most 5, the number of layers with multiplications"},
      {pipeline(0, {"fc1", "conv2"}), "\"conv2\" is not after the stage before it"},
      {pipeline(0, {"conv1"}), "\"conv1\" is the first layer"},
      {pipeline(0, {"conv9"}), "no layer fits \"conv9\""}};
  for (const auto& [options, message] : refused) {
    const auto split = [&wrong = options] { split_into_stages(deeplizard(), wrong, {}); };
    EXPECT_THAT(test::message_of<ConfigError>(split), HasSubstr(message));
  }
}

TEST(TrainingDevices, AreThoseOfAllStagesAndReplicas) {
  const auto devices = [](ParallelOptions parallel, int data, Device first) {
    parallel.data = data;
    std::string names;
    for (const Device& device :
         training_devices(deeplizard(), {.device = first, .parallel = std::move(parallel)}))
      names += (names.empty() ? "" : " ") + device.name();
    return names;
  };
  EXPECT_EQ(devices({}, 1, {DeviceType::kCuda, 2}), "cuda:2");
  EXPECT_EQ(devices({}, 3, {DeviceType::kCuda, 1}), "cuda:1 cuda:2 cuda:3");
  EXPECT_EQ(devices(pipeline(2), 2, {}), "cpu cpu:1 cpu:2 cpu:3");
  EXPECT_EQ(devices(model({{"conv*", "cuda:2"}, {"*", "cuda"}}), 1, {DeviceType::kCuda, 0}), "cuda cuda:2");
  EXPECT_EQ(devices(model({{"conv1", "cpu:0"}, {"conv2", "cpu:1"}, {"fc1", "cpu:0"}}), 1, {}), "cpu cpu:1");
  EXPECT_EQ(devices(model({{"conv*", "cuda:2"}, {"*", "cuda"}}), 2, {DeviceType::kCuda, 0}),
            "cuda cuda:2 cuda:3 cuda:5");
}

TEST(Patterns, KnowStarsAndQuestionMarks) {
  for (const char* pattern : {"conv1", "conv*", "*1", "c*v*", "conv?", "*", "**"})
    EXPECT_TRUE(fits_pattern("conv1", pattern)) << pattern;
  for (const char* pattern : {"", "conv", "conv1?", "*2", "onv*", "c?v1", "conv1*x"})
    EXPECT_FALSE(fits_pattern("conv1", pattern)) << pattern;
  EXPECT_TRUE(fits_pattern("", "*"));
  EXPECT_FALSE(fits_pattern("", "?"));
  EXPECT_TRUE(fits_pattern("abcabcabd", "*abd"));
}

}  // namespace sweep::stages_test
