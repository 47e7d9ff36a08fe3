// What a good sweep file gives: settings with their defaults, runs in order, overrides.
#include "runmanager/config/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::SweepFolder;

TEST(LoadSweep, EverySettingHasADefault) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(R"({"dataset": "mnist", "network": "net.json"})");
  EXPECT_EQ(sweep.name, "s");  // The file's name.
  ASSERT_EQ(sweep.runs.size(), 1u);
  const RunConfig& run = sweep.runs[0];
  EXPECT_EQ(run.name, "run");
  EXPECT_TRUE(run.params.empty());
  EXPECT_EQ(run.dataset.name, "mnist");
  EXPECT_EQ(run.network.name, "net");
  EXPECT_EQ(run.network.layers.at(1).name, "fc1");
  EXPECT_EQ(run.network.layers.at(2).name, "2");  // As torch.nn.Sequential names what has no name.
  EXPECT_EQ(run.optimizer.type, "sgd");
  EXPECT_EQ(run.loss.type, "cross_entropy");
  EXPECT_EQ(run.clip_norm, 0);
  EXPECT_EQ(run.schedule.type, "constant");
  EXPECT_EQ(run.epochs, 1);
  EXPECT_EQ(run.seed, 0u);
  EXPECT_EQ(run.lr, 0.01);
  EXPECT_EQ(run.batch_size, 100u);
  EXPECT_TRUE(run.shuffle);
  EXPECT_TRUE(run.deterministic);
  EXPECT_EQ(run.resolved.at("deterministic"), true);
  EXPECT_EQ(run.num_workers, 0);
  EXPECT_EQ(run.device, "auto");
  EXPECT_TRUE(run.init.empty());
  EXPECT_EQ(run.log.images, 64);
  EXPECT_EQ(run.log.batches, 0);
  EXPECT_TRUE(run.log.histograms);
}

TEST(LoadSweep, EveryKeyReachesTheRun) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(R"({
    "$schema": "sweep.schema.json", "name": "all", "loss": {"name": "cross_entropy", "label_smoothing": 0.1}, "clip_norm": 2, "epochs": 7, "seed": 9007199254740991,
    "dataset": {"name": "mine", "path": "data", "format": "idx", "validation": 0.25, "limit": 500,
                "normalize": {"mean": [0.5], "std": [0.25]}},
    "network": {"name": "tiny", "layers": [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10, "bias": false}]},
    "optimizer": {"name": "adam", "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 1},
    "lr": 1, "batch_size": 32, "shuffle": false, "deterministic": false, "num_workers": 3, "device": "cpu", "init": "weights/a.safetensors",
    "log": {"images": 0, "graph": false, "histograms": false, "hparams": false, "text": false, "layout": false,
            "predictions": false, "batches": 10}})");
  const RunConfig& run = sweep.runs.at(0);
  EXPECT_EQ(sweep.name, "all");
  EXPECT_EQ(run.epochs, 7);
  EXPECT_EQ(run.seed, 9007199254740991u);
  EXPECT_EQ(run.dataset.path, folder.path() / "data");  // Relative to the sweep file.
  EXPECT_EQ(std::get<double>(run.dataset.validation), 0.25);
  EXPECT_EQ(run.dataset.limit, 500u);
  EXPECT_THAT(run.dataset.transform.mean, ElementsAre(0.5f));
  EXPECT_THAT(run.dataset.transform.std, ElementsAre(0.25f));
  EXPECT_EQ(run.network.name, "tiny");
  EXPECT_EQ(std::get<bool>(run.network.layers.at(1).arguments.at("bias")), false);
  const auto adam = std::get<AdamOptions>(resolve_optimizer(run.optimizer));
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.99);
  EXPECT_EQ(adam.eps, 1e-6);
  EXPECT_EQ(adam.weight_decay, 1.0);
  EXPECT_EQ(resolve_loss(run.loss).label_smoothing, 0.1);
  EXPECT_EQ(run.clip_norm, 2);
  EXPECT_EQ(run.lr, 1.0);
  EXPECT_EQ(run.batch_size, 32u);
  EXPECT_FALSE(run.shuffle);
  EXPECT_FALSE(run.deterministic);
  EXPECT_EQ(run.resolved.at("deterministic"), false) << "which makes it another run";
  EXPECT_EQ(run.num_workers, 3);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.init, folder.path() / "weights/a.safetensors");
  EXPECT_EQ(run.log.images, 0);
  EXPECT_FALSE(run.log.graph || run.log.histograms || run.log.hparams || run.log.text || run.log.layout ||
               run.log.predictions);
  EXPECT_EQ(run.log.batches, 10);
}

TEST(LoadSweep, TheLastKeyVariesFastest) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"lr": [0.01, 0.001], "batch_size": [100, 1000], "shuffle": [true, false]})"));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "batch_size", "shuffle"));
  // itertools.product([0.01, 0.001], [100, 1000], [True, False])
  EXPECT_THAT(names_of(sweep),
              ElementsAre("lr=0.01,batch_size=100,shuffle=true", "lr=0.01,batch_size=100,shuffle=false",
                          "lr=0.01,batch_size=1000,shuffle=true", "lr=0.01,batch_size=1000,shuffle=false",
                          "lr=0.001,batch_size=100,shuffle=true", "lr=0.001,batch_size=100,shuffle=false",
                          "lr=0.001,batch_size=1000,shuffle=true", "lr=0.001,batch_size=1000,shuffle=false"));
  EXPECT_EQ(sweep.runs[6].lr, 0.001);
  EXPECT_EQ(sweep.runs[6].batch_size, 1000u);
  EXPECT_TRUE(sweep.runs[6].shuffle);
  EXPECT_EQ(sweep.runs[6].index, 6u);
}

TEST(LoadSweep, AnyKeyOfTheFileCanBeAnAxis) {
  const SweepFolder folder;
  folder.write("other.json",
               R"({"layers": [{"type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 10}]})");
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"epochs": [2, 3], "dataset.validation": [0.1, 500], "network": ["net.json", "other.json"],
          "network.layers.fc1.out_features": [20], "network.layers.1.bias": [false], "log.images": [5],
          "optimizer": ["sgd", {"name": "adam", "eps": 1e-3}], "weight_decay": [0.5]})"));
  ASSERT_EQ(sweep.runs.size(), 16u);
  const RunConfig& last = sweep.runs.back();
  EXPECT_EQ(last.epochs, 3);
  EXPECT_EQ(std::get<std::size_t>(last.dataset.validation), 500u);
  EXPECT_EQ(last.network.name, "other");
  EXPECT_EQ(last.network.layers.size(), 2u);
  EXPECT_EQ(std::get<std::int64_t>(last.network.layers[1].arguments.at("out_features")), 20);
  EXPECT_EQ(std::get<bool>(last.network.layers[1].arguments.at("bias")), false);
  EXPECT_EQ(last.log.images, 5);
  const auto adam = std::get<AdamOptions>(resolve_optimizer(last.optimizer));
  EXPECT_EQ(adam.eps, 1e-3);
  EXPECT_EQ(adam.weight_decay, 0.5);  // Set into the optimizer that the axis before it chose.
  EXPECT_EQ(std::get<double>(sweep.runs[0].dataset.validation), 0.1);
  EXPECT_EQ(sweep.runs[0].network.layers.size(), 4u);
}

TEST(LoadSweep, LossAndClippingCanBeAxes) {
  const SweepFolder folder;
  const Sweep losses = folder.load(SweepFolder::with(
      R"("params": {"loss": ["cross_entropy", "mse"], "loss.label_smoothing": [0, 0.1], "clip_norm": [1, 0.5]},
         "when": {"loss.label_smoothing": {"loss": "cross_entropy"}})"));
  ASSERT_EQ(losses.runs.size(), 6u);
  EXPECT_EQ(resolve_loss(losses.runs[2].loss).label_smoothing, 0.1);
  EXPECT_EQ(losses.runs[3].clip_norm, 0.5);
  EXPECT_EQ(losses.runs[5].loss.type, "mse");
  EXPECT_EQ(losses.runs[5].name, "loss=mse,clip_norm=0.5");
  EXPECT_EQ(losses.runs[0].params[1].second, ParamValue(0.0));
  EXPECT_EQ(losses.runs[5].resolved["loss"], (nlohmann::ordered_json{{"name", "mse"}}));
  EXPECT_EQ(losses.runs[2].resolved["loss"]["label_smoothing"], 0.1);
  const std::string plain = SweepFolder::with(R"("epochs": 1)");
  EXPECT_EQ(resolve_loss(folder.load(plain, {"loss.label_smoothing=0.25"}).runs[0].loss).label_smoothing,
            0.25);
  EXPECT_FALSE(folder.load(plain).runs[0].resolved.contains("clip_norm"));
  EXPECT_EQ(folder.load(plain, {"clip_norm=3"}).runs[0].resolved["clip_norm"], 3.0);
  const Sweep switched = folder.load(plain, {"clip_norm=0,0.5"});
  EXPECT_EQ(switched.runs[0].name, "clip_norm=0");
  EXPECT_EQ(switched.runs[0].clip_norm, 0);
  EXPECT_FALSE(switched.runs[0].resolved.contains("clip_norm")) << "the same training as without it";
}

TEST(LoadSweep, SchedulesAreNamesOrObjectsAndCanBeAxes) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"schedule": ["constant", "cosine", {"name": "step", "step_size": 3}, "one_cycle",
           {"name": "warmup", "total_iters": 2, "then": "cosine"}], "schedule.eta_min": [0, 1e-3]},
         "when": {"schedule.eta_min": {"schedule": "cosine"}})"));
  ASSERT_EQ(sweep.runs.size(), 6u);
  EXPECT_EQ(sweep.runs[1].name, "schedule=cosine,schedule.eta_min=0");
  EXPECT_EQ(std::get<CosineSchedule>(resolve_schedule(sweep.runs[2].schedule)).eta_min, 1e-3);
  EXPECT_EQ(sweep.runs[2].params[1].second, ParamValue(1e-3));
  EXPECT_EQ(std::get<StepSchedule>(resolve_schedule(sweep.runs[3].schedule)).step_size, 3);
  EXPECT_EQ(sweep.runs[4].resolved["schedule"]["anneal_strategy"], "cos");
  EXPECT_EQ(sweep.runs[5].resolved["schedule"]["then"],
            (nlohmann::ordered_json{{"name", "cosine"}, {"eta_min", 0.0}}));
  const std::string warmup = SweepFolder::with(R"("schedule": "warmup")");
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"schedule.then=cosine", "schedule.then.T_max=7"},
        {R"(schedule.then={"name":"cosine","T_max":7})"}}) {
    const auto options =
        std::get<WarmupSchedule>(resolve_schedule(folder.load(warmup, overrides).runs[0].schedule));
    EXPECT_EQ(std::get<CosineSchedule>(options.then.value()).t_max, 7);
  }
}

TEST(LoadSweep, AKeyHasOneTypeInAllRuns) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"dataset.validation": [0.5, 500], "lr": [1, 2], "epochs": [1], "optimizer": ["sgd", {"name": "adam"}]})"));
  for (const RunConfig& run : sweep.runs) {
    EXPECT_TRUE(std::holds_alternative<double>(run.params[0].second));
    EXPECT_TRUE(
        std::holds_alternative<double>(run.params[1].second));  // A learning rate, whatever it looks like.
    EXPECT_TRUE(std::holds_alternative<std::int64_t>(run.params[2].second));
    EXPECT_TRUE(std::holds_alternative<std::string>(run.params[3].second));
  }
  EXPECT_EQ(std::get<double>(sweep.runs.back().params[0].second), 500.0);
  EXPECT_EQ(std::get<std::string>(sweep.runs.back().params[3].second), R"({"name":"adam"})");
}

TEST(LoadSweep, RangesIncludeBothEnds) {
  const SweepFolder folder;
  const auto values = [&](const std::string& axis) {
    std::vector<double> result;
    for (const RunConfig& run : folder.load(SweepFolder::with("\"params\": {\"lr\": " + axis + "}")).runs)
      result.push_back(run.lr);
    return result;
  };
  EXPECT_THAT(values(R"({"range": [0.1, 0.5, 0.1]})"), ElementsAre(0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_THAT(values(R"({"range": [3, 1, -1]})"), ElementsAre(3, 2, 1));
  EXPECT_THAT(values(R"({"range": [1, 2, 0.7]})"), ElementsAre(1, 1.7));
  EXPECT_THAT(values(R"({"linspace": [1, 2, 5]})"), ElementsAre(1, 1.25, 1.5, 1.75, 2));
  EXPECT_THAT(values(R"({"linspace": [1, 2, 1]})"), ElementsAre(1));
  EXPECT_THAT(values(R"({"logspace": [1e-4, 0.1, 4]})"), ElementsAre(1e-4, 1e-3, 1e-2, 1e-1));
  // numpy.geomspace(0.001, 0.1, 4) to 12 digits.
  EXPECT_THAT(values(R"({"logspace": [0.001, 0.1, 4]})"),
              ElementsAre(0.001, 0.00464158883361, 0.0215443469003, 0.1));
}

TEST(LoadSweep, RangesOfIntegersAreIntegers) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"batch_size": {"logspace": [10, 1000, 3]}, "epochs": {"range": [1, 5, 2]}, "seed": {"linspace": [0, 10, 3]}})"));
  EXPECT_EQ(sweep.runs.size(), 27u);
  EXPECT_EQ(sweep.runs.back().name, "batch_size=1000,epochs=5,seed=10");
  EXPECT_EQ(sweep.runs[13].name, "batch_size=100,epochs=3,seed=5");
}

TEST(LoadSweep, ZippedAxesAdvanceTogetherAtThePlaceOfTheFirst) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"lr": [0.1, 0.2], "seed": [1, 2], "batch_size": [10, 20]}, "zip": [["batch_size", "lr"]])"));
  EXPECT_THAT(names_of(sweep), ElementsAre("lr=0.1,seed=1,batch_size=10", "lr=0.1,seed=2,batch_size=10",
                                           "lr=0.2,seed=1,batch_size=20", "lr=0.2,seed=2,batch_size=20"));
}

TEST(LoadSweep, ExcludedCombinationsAreLeftOutWithTheReason) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"device": ["cuda", "cpu"], "batch_size": [10, 20, 30]}, "exclude": [{"device": "cpu", "batch_size": [20, 30]}])"));
  EXPECT_THAT(names_of(sweep), ElementsAre("device=cuda,batch_size=10", "device=cuda,batch_size=20",
                                           "device=cuda,batch_size=30", "device=cpu,batch_size=10"));
  ASSERT_EQ(sweep.excluded.size(), 2u);
  EXPECT_EQ(std::get<std::int64_t>(sweep.excluded[0].params[1].second), 20);
  EXPECT_THAT(sweep.excluded[0].reason,
              HasSubstr("s.json:2:80: exclude.0: device is \"cpu\" and batch_size is 20 or 30"));
}

TEST(LoadSweep, ARuleMayAskForAPlainValueOfTheFile) {
  const SweepFolder folder;
  const std::string params = R"("params": {"lr": [0.1, 0.2]}, "exclude": [{"lr": 0.1, "epochs": 5}])";
  EXPECT_EQ(folder.load(SweepFolder::with("\"epochs\": 5, " + params)).runs.size(), 1u);
  EXPECT_EQ(folder.load(SweepFolder::with("\"epochs\": 4, " + params)).runs.size(), 2u);
  EXPECT_EQ(folder.load(SweepFolder::with(params)).runs.size(), 2u);  // The default, 1.
  EXPECT_EQ(folder.load(SweepFolder::with("\"epochs\": 4, " + params), {"epochs=5"}).runs.size(), 1u);
}

TEST(LoadSweep, AConditionalAxisExistsOnlyWhereItsConditionHolds) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"optimizer": ["adam", "sgd"], "momentum": [0.5, 0.9], "nesterov": [true, false]},
         "when": {"momentum": {"optimizer": "sgd"}, "nesterov": {"momentum": 0.9}})"));
  EXPECT_THAT(names_of(sweep), ElementsAre("optimizer=adam", "optimizer=sgd,momentum=0.5",
                                           "optimizer=sgd,momentum=0.9,nesterov=true",
                                           "optimizer=sgd,momentum=0.9,nesterov=false"));
  EXPECT_THAT(sweep.keys, ElementsAre("optimizer", "momentum", "nesterov"));
  EXPECT_EQ(sweep.runs[0].params.size(), 1u);
}

TEST(LoadSweep, GridsAreAUnionWithoutDoubles) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"seed": [1, 2]}, "grids": [{"lr": [0.1, 0.2]}, {"lr": [0.2], "epochs": [3]}, {"lr": [0.1]}])"));
  EXPECT_THAT(names_of(sweep), ElementsAre("seed=1,lr=0.1", "seed=1,lr=0.2", "seed=2,lr=0.1", "seed=2,lr=0.2",
                                           "seed=1,lr=0.2,epochs=3", "seed=2,lr=0.2,epochs=3"));
  EXPECT_THAT(sweep.keys, ElementsAre("seed", "lr", "epochs"));
}

TEST(LoadSweep, RepeatsAreTheLastAxisAndKeepTheSeed) {
  const SweepFolder folder;
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("seed": 7, "repeats": 2, "params": {"lr": [0.1, 0.2]})"));
  EXPECT_THAT(names_of(sweep),
              ElementsAre("lr=0.1,repeat=0", "lr=0.1,repeat=1", "lr=0.2,repeat=0", "lr=0.2,repeat=1"));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "repeat"));
  EXPECT_EQ(sweep.runs[1].repeat, 1u);
  EXPECT_EQ(sweep.runs[1].seed, 7u);
}

TEST(LoadSweep, AnOverrideReplacesAnAxisOrAPlainValue) {
  const SweepFolder folder;
  const std::string file = SweepFolder::with(R"("epochs": 5, "params": {"lr": [0.1, 0.2], "seed": [1, 2]})");
  EXPECT_THAT(names_of(folder.load(file, {"lr=0.5", "seed=3,4"})),
              ElementsAre("lr=0.5,seed=3", "lr=0.5,seed=4"));
  EXPECT_EQ(folder.load(file, {"epochs=3"}).runs[0].epochs, 3);
  EXPECT_EQ(folder.load(file, {"epochs=3"}).runs[0].name, "lr=0.1,seed=1");
  EXPECT_THAT(names_of(folder.load(file, {"epochs=3,4", "lr=0.1", "seed=1"})),
              ElementsAre("lr=0.1,seed=1,epochs=3", "lr=0.1,seed=1,epochs=4"));
  EXPECT_EQ(folder.load(file, {"network.layers.1.out_features=6,12"}).runs.size(), 8u);
  EXPECT_EQ(folder.load(file, {"network.layers.fc1.out_features=6"})
                .runs[0]
                .network.layers[1]
                .arguments.at("out_features"),
            ArgumentValue(std::int64_t{6}));
  EXPECT_EQ(folder.load(file, {"params.lr={\"logspace\":[0.001,1,4]}"}).runs.size(), 8u);
  EXPECT_EQ(folder.load(file, {"lr=[0.3]"}).runs.size(), 2u);
  EXPECT_EQ(folder.load(file, {"name=123", "repeats=2"}).name, "123");
  EXPECT_EQ(folder.load(file, {"dataset=mnist", "dataset.limit=200"}).runs[0].dataset.limit, 200u);
  const OptimizerSpec optimizer = folder.load(file, {"optimizer=adam", "betas=[0.8,0.9]"}).runs[0].optimizer;
  EXPECT_EQ(optimizer.type, "adam");
  EXPECT_EQ(std::get<AdamOptions>(resolve_optimizer(optimizer)).beta2, 0.9);
  EXPECT_EQ(folder.load(file, {"device=cpu,cuda"}).runs[1].device, "cuda");
}

TEST(LoadSweep, TheOptionsForEpochsAndSeedAreOverrides) {
  const SweepFolder folder;
  LoadOptions options;
  options.epochs = "9";
  options.seed = "8";
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("epochs": 5, "params": {"seed": [1, 2]})"), {}, options);
  ASSERT_EQ(sweep.runs.size(), 1u);
  EXPECT_EQ(sweep.runs[0].epochs, 9);
  EXPECT_EQ(sweep.runs[0].seed, 8u);
  options.epochs = "many";
  EXPECT_EQ(folder.error(SweepFolder::with("\"lr\": 1"), {}, options),
            "--epochs many: epochs: got \"many\", want an integer >= 1");
}

TEST(LoadSweep, TheOptionForTheSameBitsReplacesAnAxis) {
  const SweepFolder folder;
  LoadOptions options;
  for (const bool deterministic : {true, false}) {
    options.deterministic = deterministic;
    const Sweep sweep =
        folder.load(SweepFolder::with(R"("params": {"deterministic": [true, false]})"), {}, options);
    ASSERT_EQ(sweep.runs.size(), 1u);
    EXPECT_EQ(sweep.runs[0].deterministic, deterministic);
  }
}

TEST(LoadSweep, MistakesInOverridesNameTheOverride) {
  const SweepFolder folder;
  const std::string file = SweepFolder::with(R"("params": {"lr": [0.1, 0.2]})");
  EXPECT_EQ(folder.error(file, {"lr=-1"}), "override \"lr=-1\": lr: got -1, want a number > 0");
  EXPECT_EQ(folder.error(file, {"lr=0.1,"}),
            "override \"lr=0.1,\": lr: a value is missing, want KEY=VALUE or KEY=VALUE,VALUE,…");
  EXPECT_EQ(folder.error(file, {"lr"}), "override \"lr\": want KEY=VALUE or KEY=VALUE,VALUE,…");
  EXPECT_EQ(folder.error(file, {"=3"}), "override \"=3\": want KEY=VALUE or KEY=VALUE,VALUE,…");
  EXPECT_THAT(folder.error(file, {"epoch=3"}),
              HasSubstr("override \"epoch=3\": epoch: unknown key \"epoch\""));
  EXPECT_THAT(folder.error(file, {"epoch=3"}), HasSubstr("did you mean \"epochs\"?"));
  EXPECT_EQ(folder.error(file, {"lr=1", "lr=2"}),
            "override \"lr=2\": lr: \"lr\" is given twice, want it once");
  EXPECT_EQ(folder.error(file, {"lr=1,1"}),
            "override \"lr=1,1\": lr: got 1 a second time, want different values");
  EXPECT_EQ(folder.error(file, {"network.layers.9.bias=true"}),
            "override \"network.layers.9.bias=true\": network.layers.9.bias: there is no \"9\", want an "
            "index from 0 to 3 or a name: fc1 or out");
  EXPECT_THAT(folder.error(file, {"network.layers.fc2.bias=true"}), HasSubstr("did you mean \"fc1\"?"));
  EXPECT_EQ(folder.error(file, {"epochs.x=1"}),
            "override \"epochs.x=1\": epochs.x: \"epochs\" has no parts, want just \"epochs\"");
  EXPECT_EQ(folder.error(file, {"zip=1"}),
            "override \"zip=1\": zip: this cannot be given on the command line, only in the file");
  EXPECT_EQ(folder.error(file, {"name=a,b"}),
            "override \"name=a,b\": name: want one value: a directory name");
  EXPECT_THAT(folder.error(file, {"name=../up"}),
              HasSubstr("override \"name=../up\": name: got \"../up\", want a directory name without /"));
  EXPECT_THAT(folder.error(file, {"batch_size=70000"}),
              HasSubstr("override \"batch_size=70000\": batch_size: got 70000, want at most 60000"));
  EXPECT_EQ(folder.error(file, {"lr=\xFF"}), "override \"lr=\xFF\": not UTF-8 text");
}

TEST(LoadSweep, DataSetsBelowSweepDataAreKnownByName) {
  const SweepFolder folder;
  std::filesystem::create_directories(folder.path() / "own-set");
  const std::string file = R"({"dataset": "own-set", "network": "net.json"})";
  EXPECT_THAT(folder.error(file),
              HasSubstr("dataset: got \"own-set\", want fashion-mnist or mnist, or an object"));
  ::setenv("SWEEP_DATA", folder.path().c_str(), 1);
  EXPECT_EQ(folder.load(file).runs[0].dataset.name, "own-set");
  ::unsetenv("SWEEP_DATA");
}

TEST(LoadSweep, ErrorsFoundLaterKnowTheirPlace) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(
      R"({"dataset": {"name": "mine", "path": "d"}, "network": "net.json", "params": {"batch_size": [5, 50]}})");
  const auto sizes = [](const DatasetSpec&) { return DataSizes{{1, 28, 28}, 10, 20}; };
  try {
    check_against_data(sweep, sizes);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(folder.without_folder(error.what()),
              "s.json:1:96: params.batch_size.1: got 50, want at most 20, the number of training samples");
  }
  EXPECT_NO_THROW(check_against_data(sweep, [](const DatasetSpec&) { return DataSizes{{3, 9, 9}, 10, 50}; }));
}

TEST(LoadSweep, TheSizesOfADataSetAreAskedForOnce) {
  const SweepFolder folder;
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("params": {"dataset.limit": [200, 300], "lr": [0.1, 0.2, 0.3]})"));
  int calls = 0;
  check_against_data(sweep, [&](const DatasetSpec& spec) {
    ++calls;
    return DataSizes{{1, 28, 28}, 10, spec.limit};
  });
  EXPECT_EQ(calls, 2);
}

TEST(LoadSweep, TheExpandedFileGivesTheSameRuns) {
  const SweepFolder folder;
  const std::string file = SweepFolder::with(
      R"("repeats": 2, "params": {"lr": {"logspace": [0.001, 0.1, 3]}, "optimizer": ["sgd", "adam"], "momentum": [0.5, 0.9]},
         "when": {"momentum": {"optimizer": "sgd"}}, "exclude": [{"lr": 0.1, "optimizer": "adam"}])");
  const Sweep first = folder.load(file, {"epochs=4", "network.layers.fc1.out_features=5"});
  const Sweep again = folder.load(first.resolved.dump());
  EXPECT_EQ(names_of(again), names_of(first));
  ASSERT_EQ(again.runs.size(), first.runs.size());
  for (std::size_t i = 0; i < first.runs.size(); ++i)
    EXPECT_EQ(again.runs[i].resolved, first.runs[i].resolved);
  EXPECT_EQ(again.runs[0].epochs, 4);
}

TEST(LoadSweep, TheResolvedSettingsOfARunAreASweepFileOfThatRun) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("clip_norm": 2, "loss": {"label_smoothing": 0.5},
        "schedule": {"name": "warmup", "then": {"name": "step", "step_size": 2}}, "params": {"optimizer": ["adam"], "lr": [0.5], "seed": [3]})"));
  nlohmann::ordered_json resolved = sweep.runs[0].resolved;
  EXPECT_EQ(resolved["optimizer"]["betas"],
            nlohmann::ordered_json::array({0.9, 0.999}));  // PyTorch's default.
  resolved.erase("repeat");
  const Sweep again = folder.load(resolved.dump());
  ASSERT_EQ(again.runs.size(), 1u);
  EXPECT_EQ(again.runs[0].resolved, sweep.runs[0].resolved);
}

TEST(LoadSweep, ThousandsOfRunsAreExpandedWithinASecond) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(R"("params": {"seed": {"range": [1, 5000, 1]}})"));
  EXPECT_EQ(sweep.runs.size(), 5000u);
  EXPECT_EQ(sweep.runs.back().name, "seed=5000");
}

}  // namespace
}  // namespace sweep
