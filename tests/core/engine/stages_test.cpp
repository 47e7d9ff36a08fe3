// Which layers are a stage, and where it is computed.
#include "core/engine/stages.h"

#include "core/engine/device.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
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

// What the devices of a pipeline do, and when.

using Order = std::vector<std::vector<StageTask>>;

constexpr auto kGpipe = PipelineSchedule::kGpipe;
constexpr auto k1F1B = PipelineSchedule::kOneForwardOneBackward;

// "F0.0 B0.0 F1.0": what each device does with which part of which stage.
std::vector<std::string> texts_of(const Order& order) {
  std::vector<std::string> texts;
  for (const std::vector<StageTask>& tasks : order) {
    std::string& text = texts.emplace_back();
    for (const StageTask& task : tasks)
      text += (text.empty() ? "" : " ") + std::string(task.backward ? "B" : "F") + std::to_string(task.part) +
              "." + std::to_string(task.stage);
  }
  return texts;
}

TEST(PipelineOrder, GoesForwardFirstOrAlternatesOrBringsTheFurthestPartOn) {
  const std::vector<std::size_t> two = {0, 1}, three = {0, 1, 2}, first_twice = {0, 1, 0};
  EXPECT_THAT(texts_of(pipeline_order(two, 3, kGpipe, PipelinePasses::kBoth)),
              ElementsAre("F0.0 F1.0 F2.0 B0.0 B1.0 B2.0", "F0.1 F1.1 F2.1 B0.1 B1.1 B2.1"));
  EXPECT_THAT(texts_of(pipeline_order(three, 5, k1F1B, PipelinePasses::kBoth)),
              ElementsAre("F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 F4.0 B2.0 B3.0 B4.0",
                          "F0.1 F1.1 B0.1 F2.1 B1.1 F3.1 B2.1 F4.1 B3.1 B4.1",
                          "F0.2 B0.2 F1.2 B1.2 F2.2 B2.2 F3.2 B3.2 F4.2 B4.2"));
  EXPECT_THAT(texts_of(pipeline_order(first_twice, 3, kGpipe, PipelinePasses::kForward)),
              ElementsAre("F0.0 F1.0 F0.2 F1.2 F2.0 F2.2", "F0.1 F1.1 F2.1"));
}

TEST(PipelineOrder, OfOneForwardOneBackwardKeepsFewPartsInMemory) {
  const std::vector<std::vector<std::size_t>> layouts = {
      {0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 0, 1}, {0, 1, 2, 1, 0}};
  for (const auto& devices : layouts) {
    for (const std::size_t parts : {1, 2, 3, 7, 16}) {
      for (const auto& tasks : pipeline_order(devices, parts, k1F1B, PipelinePasses::kBoth)) {
        std::vector<std::size_t> under_way(devices.size());
        for (const StageTask& task : tasks) {
          under_way[task.stage] += task.backward ? static_cast<std::size_t>(-1) : 1;
          EXPECT_LE(under_way[task.stage], devices.size() - task.stage);
        }
      }
    }
  }
}

TEST(ParseDevice, ReadsEveryForm) {
  EXPECT_EQ(parse_device("cpu"), (Device{DeviceType::kCpu, 0}));
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCuda, 0}));
  EXPECT_EQ(parse_device("cuda:0"), parse_device("cuda"));
  EXPECT_EQ(parse_device("cuda:12"), (Device{DeviceType::kCuda, 12}));
  EXPECT_EQ(parse_device("cuda:3").name(), "cuda:3");
  EXPECT_EQ(parse_device("cuda:0").name(), "cuda");
}

TEST(ParseDevice, OtherTextSaysWhatIsAllowed) {
  for (const char* text :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cpu0", "cuda:99999999999", "auto:1"}) {
    EXPECT_THAT([&] { parse_device(text); }, ThrowsMessage<ConfigError>(HasSubstr("cuda:N"))) << text;
  }
}

TEST(ParseDevice, AutoIsCudaWhereItCanTrainElseTheCpu) {
  EXPECT_EQ(parse_device("auto").type, cuda_unavailable_reason() ? DeviceType::kCpu : DeviceType::kCuda);
}

TEST(Devices, TheCpuIsFirstAndUsable) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].device, parse_device("cpu"));
  EXPECT_GE(devices[0].cores, 1);
  EXPECT_GT(devices[0].memory_bytes, 0u);
  EXPECT_FALSE(devices[0].capability.empty());
  EXPECT_EQ(devices[0].capability.find("AVX3"), std::string::npos) << devices[0].capability;
  EXPECT_EQ(unavailable_reason(parse_device("cpu")), std::nullopt);
}

TEST(Devices, CodeRunsOnWhatItWasBuiltForAndOnWhatCanTakeIt) {
  EXPECT_TRUE(runs_code_for("75-real;90", "7.5"));
  EXPECT_TRUE(runs_code_for("80-real", "8.6")) << "machine code runs on later minor versions";
  EXPECT_FALSE(runs_code_for("86-real", "8.0"));
  EXPECT_FALSE(runs_code_for("80-real,90-real", "7.5"));
  EXPECT_FALSE(runs_code_for("80-real", "9.0"));
  EXPECT_TRUE(runs_code_for("80", "12.0")) << "PTX is compiled for later ones";
  EXPECT_TRUE(runs_code_for("80-virtual", "10.3"));
  EXPECT_FALSE(runs_code_for("120", "10.0"));
  EXPECT_TRUE(runs_code_for("120", "12.1"));
  EXPECT_TRUE(runs_code_for("native", "7.0"));
}

TEST(Devices, ADeviceThatIsNotThereHasAReason) {
  EXPECT_NE(unavailable_reason(parse_device("cuda:4000")), std::nullopt);
  EXPECT_NE(unavailable_reason({DeviceType::kCuda, -1}), std::nullopt);
}

}  // namespace sweep::stages_test
