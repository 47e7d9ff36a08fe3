// What single keys of a sweep file give.

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
using SearchFile = testing::InSweepFolder;

using Json = nlohmann::ordered_json;

// What a run with the settings `b` differs in from one with `a`; "" if it is the same run.
std::string difference(const Json& a, const Json& b) {
  return to_string(differences(identity_of(a, "cpu", nullptr), identity_of(b, "cpu", nullptr)));
}

// The keys "parallel" and "accumulate".

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
  const auto change = [this](const std::string& keys) {
    return difference(folder.load(SweepFolder::with("\"lr\": 0.1")).runs.at(0).resolved,
                      folder.load(SweepFolder::with("\"lr\": 0.1, " + keys)).runs.at(0).resolved);
  };
  EXPECT_EQ(change(R"("parallel": {"data": 4})"), "");
  EXPECT_EQ(change(R"("parallel": {"pipeline": {"stages": 2}})"), "");
  EXPECT_EQ(change(R"("accumulate": 2)"), "accumulate: 1 -> 2");
}

TEST_F(RunIdentity, AnotherNetworkIsToldWithoutEveryArgumentOfItsLayers) {
  const auto with = [](const char* layers) {
    return Json{{"lr", 0.1}, {"network", {{"layers", Json::parse(layers)}}}};
  };
  EXPECT_EQ(difference(with("[1, 2, 3, 4, 5]"), with("[0, 0, 0, 0, 0]")),
            "network.layers[0]: 1 -> 0, network.layers[1]: 2 -> 0, network.layers[2]: 3 -> 0, "
            "network.layers[3]: 4 -> 0, network.layers[4]: 5 -> 0");
  EXPECT_THAT(difference(with("[1, 2, 3, 4, 5, 6, 7]"), with("[0, 0, 0, 0, 0, 0, 0]")),
              EndsWith("network.layers[4]: 5 -> 0, 2 more of network"));
}

// Records of earlier versions have keys that there are no more.
TEST_F(RunIdentity, IsThatOfEarlierVersionsWhichHadAPrecision) {
  const auto now = folder.load(SweepFolder::with(R"("precision": "fp32")")).runs.at(0).resolved.json();
  EXPECT_FALSE(now.contains("precision"));
  auto before = now;
  before["precision"] = "fp32";
  EXPECT_EQ(difference(before, now), "");
  before["precision"] = "bf16";
  EXPECT_NE(difference(before, now), "");
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
  auto without = config("");
  auto& pool = without["network"]["layers"][0]["layers"][0];
  EXPECT_EQ(pool["stride"], pool["kernel_size"]);
  EXPECT_TRUE(same_value(without, config(R"(, "stride": [2, 2])")));
  pool.erase("stride");
  EXPECT_EQ(difference(without, config("")), "");
  EXPECT_EQ(difference(without, config(R"(, "stride": 1)")),
            "network.layers[0].layers[0].stride[0]: 2 -> 1, network.layers[0].layers[0].stride[1]: 2 -> 1");
}

// The key "search", and axes that are ranges.

// With a validation set, which the default metric needs.
std::string searching(const std::string& search, const std::string& more) {
  return R"({"dataset": {"name": "fashion-mnist", "validation": 1000}, "network": "net.json", "epochs": 9,)"
         "\n\"search\": " +
         search + ",\n" + more + "}";
}

constexpr const char* kRates = R"("params": {"lr": {"log_uniform": [0.0001, 0.1]}, "batch_size": [10, 100]})";

TEST_F(SearchFile, DrawsPointsWithinTheirRanges) {
  const Sweep sweep = folder.load(
      searching(R"({"method": "random", "trials": 60, "seed": 4})",
                R"("params": {"lr": {"log_uniform": [0.001, 0.1]}, "batch_size": {"int_uniform": [16, 64]},
                    "optimizer": ["sgd", "adam"]})"));
  ASSERT_THAT(sweep.runs, SizeIs(60));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "batch_size", "optimizer"));
  std::set<std::string> names;
  int low = 0;
  for (const RunConfig& run : sweep.runs) {
    EXPECT_GE(run.lr, 0.001);
    EXPECT_LE(run.lr, 0.1);
    low += run.lr < 0.01;
    EXPECT_GE(run.batch_size, 16U);
    EXPECT_LE(run.batch_size, 64U);
    EXPECT_EQ(std::get<double>(*find_param(run.params, "lr")), run.lr);
    EXPECT_EQ(std::get<std::int64_t>(*find_param(run.params, "batch_size")),
              static_cast<std::int64_t>(run.batch_size));
    EXPECT_EQ(std::holds_alternative<AdamOptions>(run.optimizer),
              param_text(run.params, "optimizer") == "adam");
    EXPECT_LT(run.name.size(), 45U) << run.name;
    EXPECT_TRUE(names.insert(run.name).second);
  }
  EXPECT_GT(low, 15);
  EXPECT_LT(low, 45);
}

TEST_F(SearchFile, TheSameSeedDrawsTheSamePointsAndMoreTrialsBeginWithThem) {
  const auto names = [&](const std::string& search) {
    std::vector<std::string> list;
    for (const RunConfig& run : folder.load(searching(search, kRates)).runs) list.push_back(run.name);
    return list;
  };
  const auto ten = names(R"({"method": "random", "trials": 10, "seed": 7})");
  auto twenty = names(R"({"method": "random", "trials": 20, "seed": 7})");
  twenty.resize(10);
  EXPECT_EQ(ten, twenty);
  EXPECT_NE(ten, names(R"({"method": "random", "trials": 10, "seed": 8})"));
}

TEST_F(SearchFile, RepeatsEachRandomPoint) {
  const Sweep sweep = folder.load(searching(R"({"method": "random", "trials": 2})",
                                            R"("repeats": 2, "params": {"lr": {"uniform": [0.1, 1]}})"));
  ASSERT_THAT(sweep.runs, SizeIs(4));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "repeat"));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sweep.runs[i].index, i);
    EXPECT_EQ(sweep.runs[i].repeat, i % 2);
    EXPECT_EQ(sweep.runs[i].lr, sweep.runs[i / 2 * 2].lr);
    EXPECT_EQ(param_text(sweep.runs[i].params, "repeat"), std::to_string(i % 2));
  }
  EXPECT_NE(sweep.runs[0].lr, sweep.runs[2].lr);
}

TEST_F(SearchFile, TpeBeginsWithTheTrialsThatNeedNoResults) {
  const Sweep sweep = folder.load(searching(R"({"method": "tpe", "trials": 30, "at_once": 3})", kRates));
  EXPECT_THAT(sweep.runs, SizeIs(3));
  ASSERT_TRUE(sweep.trials);
  EXPECT_THAT(sweep.trials->points, SizeIs(3));
  const RunConfig next = sweep.trials->make_run(3, {0.05, 1.0});
  EXPECT_EQ(next.name, "lr=0.05,batch_size=100");
  EXPECT_EQ(next.batch_size, 100U);
  EXPECT_EQ(next.index, 3U);
  EXPECT_EQ(next.resolved.at("lr"), 0.05);
}

TEST_F(SearchFile, ATrialWithoutAKeyKnowsTheValueInForce) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("search": {"method": "random", "trials": 20, "metric": "Loss/train"},
         "params": {"optimizer": ["adam", "sgd"], "momentum": {"uniform": [0.1, 1]}, "batch_size": {"int_uniform": [2, 9]}},
         "when": {"momentum": {"optimizer": "sgd"}, "batch_size": {"optimizer": "adam"}})"));
  for (const RunConfig& run : sweep.runs) {
    if (std::holds_alternative<AdamOptions>(run.optimizer))
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("momentum", ParamValue(0.0))));
    else
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("batch_size", ParamValue(std::int64_t{100}))));
  }
}

}  // namespace sweep::keys_test
