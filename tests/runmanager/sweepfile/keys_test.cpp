// The keys "parallel" and "accumulate".

#include "core/network/network.h"
#include "runmanager/config/data_check.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"
#include "runmanager/text/json_document.h"
#include "tests/support/sweep_folder.h"

namespace sweep::keys_test {

using Parallel = testing::InSweepFolder;
using RunIdentity = testing::InSweepFolder;
using SlurmKey = testing::InSweepFolder;
using Stop = testing::InSweepFolder;

TEST_F(Parallel, HasWhatTheFileSays) {
  EXPECT_EQ(folder.load(SweepFolder::with(R"("lr": 0.1)")).runs.at(0).parallel, ParallelOptions{});
  const std::string keys = R"("parallel": {"data": 2, "model": {"fc*": "cpu:0", "out": "cpu:1"},
                                          "pipeline": {"micro_batches": 8, "schedule": "1f1b"}})";
  const ParallelOptions options = folder.load(SweepFolder::with(keys)).runs.at(0).parallel;
  EXPECT_EQ(options.data, 2);
  EXPECT_THAT(options.model, ElementsAre(LayerPlacement{"fc*", "cpu"}, LayerPlacement{"out", "cpu:1"}));
  ASSERT_TRUE(options.pipeline);
  EXPECT_EQ(options.pipeline->micro_batches, 8);
  EXPECT_EQ(options.pipeline->schedule, PipelineSchedule::kOneForwardOneBackward);
  const ParallelOptions stages =
      folder.load(SweepFolder::with(R"("parallel": {"pipeline": {"stages": 2}})")).runs.at(0).parallel;
  EXPECT_EQ(stages.pipeline.value().stages, 2);
}

// A run that four devices began goes on with two.
TEST_F(Parallel, DoesNotChangeWhatARunIs) {
  const auto identity = [this](const std::string& keys) {
    const Sweep sweep = folder.load(SweepFolder::with(keys));
    return identity_of(sweep.runs.at(0).resolved.json(), "cpu", nullptr);
  };
  const sweep::RunIdentity plain = identity(R"("lr": 0.1)");
  EXPECT_TRUE(differences(plain, identity(R"("lr": 0.1, "parallel": {"data": 4})")).empty());
  EXPECT_TRUE(differences(plain, identity(R"("lr": 0.1, "parallel": {"pipeline": {"stages": 2}})")).empty());
  EXPECT_FALSE(differences(plain, identity(R"("lr": 0.1, "accumulate": 2)")).empty());
}

TEST_F(RunIdentity, AnotherNetworkIsToldWithoutEveryArgumentOfItsLayers) {
  const auto identity = [](const char* layers) {
    return identity_of({{"lr", 0.1}, {"network", {{"layers", nlohmann::json::parse(layers)}}}}, "cpu",
                       nullptr);
  };
  EXPECT_EQ(to_string(differences(identity("[1, 2, 3, 4, 5]"), identity("[0, 0, 0, 0, 0]"))),
            "network.layers[0]: 1 -> 0, network.layers[1]: 2 -> 0, network.layers[2]: 3 -> 0, "
            "network.layers[3]: 4 -> 0, network.layers[4]: 5 -> 0");
  EXPECT_THAT(to_string(differences(identity("[1, 2, 3, 4, 5, 6, 7]"), identity("[0, 0, 0, 0, 0, 0, 0]"))),
              EndsWith("network.layers[4]: 5 -> 0, 2 more of network"));
}

// Records of earlier versions have keys that there are no more.
TEST_F(RunIdentity, IsThatOfEarlierVersionsWhichHadAPrecision) {
  const auto now = folder.load(SweepFolder::with(R"("precision": "fp32")")).runs.at(0).resolved.json();
  EXPECT_FALSE(now.contains("precision"));
  auto before = now;
  before["precision"] = "fp32";
  EXPECT_TRUE(differences(identity_of(before, "cpu", nullptr), identity_of(now, "cpu", nullptr)).empty());
  before["precision"] = "bf16";
  EXPECT_FALSE(differences(identity_of(before, "cpu", nullptr), identity_of(now, "cpu", nullptr)).empty());
}

// The key "slurm", and --slurm.

std::string on_slurm(const std::string& keys) { return SweepFolder::with("\"slurm\": {" + keys + "}"); }

TEST_F(SlurmKey, SaysWhatTasksOfEachKindAskFor) {
  const SlurmSpec spec = slurm_spec(folder.load(on_slurm(
      R"("partition": "all", "time": "4:00:00", "gres": "gpu:2", "setup": "a", "tasks": 3,
         "cuda": {"partition": "gpu", "setup": ["b", "c"]}, "cpu": {"memory": "8G"})")));
  EXPECT_EQ(spec.tasks, 3);
  EXPECT_EQ(spec.cpu.partition, "all");
  EXPECT_EQ(spec.cpu.memory, "8G");
  EXPECT_EQ(spec.cpu.gres, "") << "GPUs are for runs on CUDA";
  EXPECT_THAT(spec.cpu.setup, ElementsAre("a"));
  EXPECT_EQ(spec.cuda.partition, "gpu");
  EXPECT_EQ(spec.cuda.time, "4:00:00");
  EXPECT_EQ(spec.cuda.memory, "");
  EXPECT_EQ(spec.cuda.gres, "gpu:2");
  EXPECT_THAT(spec.cuda.setup, ElementsAre("b", "c"));
}

TEST_F(SlurmKey, HasDefaults) {
  const SlurmSpec spec = slurm_spec(folder.load(SweepFolder::with("\"lr\": 0.1")));
  EXPECT_EQ(spec.tasks, 8);
  EXPECT_TRUE(spec.report);
  EXPECT_EQ(spec.cuda.gres, "");
}

TEST(SlurmMinutes, AreReadAsSbatchReadsThem) {
  EXPECT_EQ(slurm_minutes("30"), 30);
  EXPECT_EQ(slurm_minutes("30:30"), 31);
  EXPECT_EQ(slurm_minutes("4:00:00"), 240);
  EXPECT_EQ(slurm_minutes("1-12"), 36 * 60);
  EXPECT_EQ(slurm_minutes("1-0:05"), 24 * 60 + 5);
  EXPECT_EQ(slurm_minutes("1-0:0:1"), 24 * 60 + 1);
  EXPECT_EQ(slurm_minutes("UNLIMITED"), 0);
  for (const char* bad : {"", "x", "4h", "1:2:3:4", "-5", "1-", "1--2", "0", "99999999999999999999"})
    EXPECT_EQ(slurm_minutes(bad), -1) << bad;
}

TEST(SlurmGpus, AreCountedInWhatIsAskedFor) {
  EXPECT_EQ(slurm_gpus("gpu"), 1);
  EXPECT_EQ(slurm_gpus("gpu:2"), 2);
  EXPECT_EQ(slurm_gpus("gpu:a100:4,tmp:10G"), 4);
  EXPECT_EQ(slurm_gpus("gpu:a100"), 1);
  EXPECT_EQ(slurm_gpus(""), 0);
}

// The keys "evaluate_first", "stop" and "checkpoint".

// Its sizes are known only when a test says them.
std::string on_own_data(const std::string& keys) {
  return R"({"dataset": {"name": "mine", "path": "d"}, "network": "net.json",)" + ("\n" + keys + "}");
}

TEST_F(Stop, OneThatTheDataCannotGiveIsFoundBeforeTraining) {
  const auto error = [this](const std::string& keys, const DataSizes& sizes) -> std::string {
    const Sweep sweep = folder.load(on_own_data(keys));
    try {
      check_against_data(sweep, [&sizes](const DatasetSpec&) { return sizes; });
      return "";
    } catch (const ConfigError& wrong) {
      return folder.without_folder(wrong.what());
    }
  };
  const DataSizes validated{.shape = {1, 28, 28}, .classes = 10, .train = 500, .validation = 50},
      alone{.shape = {1, 28, 28}, .classes = 10, .train = 500};
  EXPECT_EQ(error(R"("stop": {}, "evaluate_first": true)", validated), "");
  EXPECT_EQ(error(R"("stop": {"metric": "Loss/train"}, "checkpoint": "best")", alone), "");
  EXPECT_EQ(error(R"("stop": {})", alone),
            "s.json:2:9: stop: got \"Loss/validation\" (the default metric), which needs a validation set "
            "(dataset.validation), want Loss/train, Accuracy/train or Number Correct/train");
  EXPECT_EQ(error(R"("stop": {"metric": "Top-5 Accuracy/train"})", alone),
            "s.json:2:20: stop.metric: got \"Top-5 Accuracy/train\", which is not measured for such targets, "
            "want Loss/train, Accuracy/train or Number Correct/train");
  EXPECT_EQ(error(R"("stop": {"metric": "Top-5 Accuracy/train"},
                      "params": {"network.layers.out.out_features": [12]})",
                  alone),
            "")
      << "the engine counts them where the network has many outputs, however many classes there are";
  EXPECT_EQ(error(R"("evaluate_first": true)", alone),
            "s.json:2:19: evaluate_first: there is no validation set to measure before training, want "
            "dataset.validation, or false");
}

// Networks whose layers hold layers: what is read, which keys reach inside.

constexpr const char* kDeepNetwork = R"({"layers": [
  {"name": "stem", "type": "sequential", "layers": [
    {"name": "conv", "type": "conv2d", "out_channels": 4, "kernel_size": 3, "padding": 1}, {"type": "relu"}]},
  {"name": "block1", "type": "residual",
   "layers": [{"name": "conv1", "type": "conv2d", "out_channels": 8, "kernel_size": 3, "stride": 2, "padding": 1},
              {"name": "bn1", "type": "batch_norm2d"}],
   "shortcut": [{"type": "conv2d", "out_channels": 8, "kernel_size": 1, "stride": 2}]},
  {"name": "block2", "type": "residual", "layers": [{"name": "bn", "type": "batch_norm2d"}]},
  {"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]})";

struct NestedLayers : testing::InSweepFolder {
  NestedLayers() { folder.write("deep.json", kDeepNetwork); }

  Sweep load() const { return folder.load(R"({"dataset": "mnist", "network": "deep.json"})"); }
};

std::vector<std::string> layer_names(const RunConfig& run) {
  const Network network(run.network, {1, 28, 28});
  std::vector<std::string> names;
  for (const Layer& layer : network.layers()) names.push_back(layer.name);
  return names;
}

TEST_F(NestedLayers, AreReadToAnyDepthWithNamesLikePyTorchs) {
  EXPECT_THAT(layer_names(load().runs[0]),
              ElementsAre("stem.conv", "stem.1", "block1.conv1", "block1.bn1", "block1.shortcut.0", "block1",
                          "block2.bn", "block2", "3", "out"));
}

// What a pool's stride is if it is left out is written only here, and earlier versions left it out.
TEST_F(NestedLayers, APoolsStrideThatIsLeftOutIsWrittenDown) {
  const auto config = [this](const std::string& stride) {
    folder.write("deep.json",
                 R"({"layers": [{"type": "sequential", "layers": [{"type": "max_pool2d", "kernel_size": 2)" +
                     stride + R"(}]}, {"type": "flatten"}, {"type": "linear", "out_features": 10}]})");
    return load().runs.at(0).resolved.json();
  };
  const auto differ = [](const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
    return to_string(differences(identity_of(a, "cpu", nullptr), identity_of(b, "cpu", nullptr)));
  };
  auto without = config("");
  auto& pool = without["network"]["layers"][0]["layers"][0];
  EXPECT_EQ(pool["stride"], pool["kernel_size"]);
  EXPECT_TRUE(same_value(without, config(R"(, "stride": [2, 2])")));
  pool.erase("stride");
  EXPECT_EQ(differ(without, config("")), "");
  EXPECT_EQ(differ(without, config(R"(, "stride": 1)")),
            "network.layers[0].layers[0].stride[0]: 2 -> 1, network.layers[0].layers[0].stride[1]: 2 -> 1");
}

}  // namespace sweep::keys_test
