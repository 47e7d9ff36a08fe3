// What the command line changes in a sweep file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::SweepFolder;

TEST(Overrides, AnOverrideReplacesAnAxisOrAPlainValue) {
  const SweepFolder folder;
  const std::string file = SweepFolder::with(R"("epochs": 5, "params": {"lr": [0.1, 0.2], "seed": [1, 2]})");
  EXPECT_THAT(names_of(folder.load(file, {"lr=0.5", "seed=3,4"})), ElementsAre("seed=3", "seed=4"));
  EXPECT_EQ(folder.load(file, {"epochs=3"}).runs[0].epochs, 3);
  EXPECT_EQ(folder.load(file, {"epochs=3"}).runs[0].name, "lr=0.1,seed=1");
  EXPECT_THAT(names_of(folder.load(file, {"epochs=3,4", "lr=0.1", "seed=1"})),
              ElementsAre("epochs=3", "epochs=4"));
  EXPECT_EQ(folder.load(file, {"network.layers.1.out_features=6,12"}).runs.size(), 8u);
  EXPECT_EQ(folder.load(file, {"network.layers.fc1.out_features=6"})
                .runs[0]
                .network->layers[1]
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

TEST(Overrides, AListIsOneValueOfAKeyThatTakesLists) {
  const SweepFolder folder;
  const std::string file = R"({"network": "net.json", "dataset": {"name": "mine", "path": "data"}})";
  const auto one_run = [&](const std::string& text) {
    const Sweep sweep = folder.load(file, {text});
    EXPECT_EQ(sweep.runs.size(), 1u) << text;
    return sweep.runs.at(0);
  };
  EXPECT_EQ(one_run("loss.class_weights=[1,2,3]").loss.arguments.at("class_weights"),
            ArgumentValue(std::vector{1.0, 2.0, 3.0}));
  EXPECT_THAT(one_run(R"(dataset.ignore=["a","b"])").dataset.ignore, ElementsAre("a", "b"));
  EXPECT_EQ(one_run(R"(dataset.augment=["horizontal_flip",{"cutout":{"size":2}}])").augment.size(), 2u);
  EXPECT_EQ(one_run("dataset.resize=[8,9]").dataset.resize, (std::array<std::int64_t, 2>{8, 9}));
  EXPECT_EQ(one_run(R"(slurm.options=["--exclusive"])").index, 0u);
  EXPECT_EQ(folder.load(file, {"dataset.resize=[[8,9],[16,16]]"}).runs.size(), 2u);
  EXPECT_EQ(folder.load(file, {R"(dataset.ignore=["a"],["b"],"c")"}).runs.size(), 3u);
  const std::string axis =
      R"({"network": "net.json", "dataset": {"name": "mine", "path": "data"}, "params": {"dataset.resize": [8, 9]}})";
  EXPECT_EQ(folder.load(axis, {"dataset.resize=[16,16]"}).runs.size(), 1u);
}

TEST(Overrides, TheOptionsForEpochsAndSeedAreOverrides) {
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

TEST(Overrides, TheDeterministicOptionReplacesAnAxis) {
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

TEST(Overrides, MistakesInOverridesNameTheOverride) {
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

}  // namespace
}  // namespace sweep
