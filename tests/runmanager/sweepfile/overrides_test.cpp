// What the command line changes in a sweep file.

#include "tests/support/sweep_folder.h"

namespace sweep::overrides_test {

using Overrides = testing::InSweepFolder;

TEST_F(Overrides, AnOverrideReplacesAnAxisOrAPlainValue) {
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
  EXPECT_EQ(folder.load(file, {"name=a,b"}).name, "a,b");
  EXPECT_EQ(folder.load(file, {"dataset=mnist", "dataset.limit=200"}).runs[0].dataset.limit, 200u);
  const Sweep adam = folder.load(file, {"optimizer=adam", "betas=[0.8,0.9]"});
  EXPECT_EQ(std::get<AdamOptions>(adam.runs[0].optimizer).beta2, 0.9);
  EXPECT_EQ(folder.load(file, {"device=cpu,cuda"}).runs[1].device, "cuda");
}

TEST_F(Overrides, AListIsOneValueOfAKeyThatTakesLists) {
  const std::string file = R"({"network": "net.json", "dataset": {"name": "mine", "path": "data"}})";
  const auto one_run = [&](const std::string& text) {
    const Sweep sweep = folder.load(file, {text});
    EXPECT_EQ(sweep.runs.size(), 1u) << text;
    return sweep.runs.at(0);
  };
  EXPECT_THAT(one_run("loss.class_weights=[1,2,3]").loss.class_weights, ElementsAre(1, 2, 3));
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

// The keys of a file with a program that the sweep has after these overrides.
nlohmann::ordered_json keys_of_program(const std::string& keys, const std::vector<std::string>& overrides) {
  return SweepFolder().load("{\"command\": [\"true\"], " + keys + "}", overrides).resolved;
}

TEST_F(Overrides, AMetricOfAProgramIsNoParameter) {
  const auto metrics =
      keys_of_program(R"_("metrics": {"loss": "loss=(.*)"}, "params": {"x": [1, 2]})_",
                      {"metrics.loss=l=([0-9]+),", "metrics.val.acc=(a|b)", "params.metrics.loss=3", "x=1"});
  EXPECT_EQ(metrics["metrics"].dump(), R"_({"loss":"l=([0-9]+),","val.acc":"(a|b)"})_");
  EXPECT_EQ(metrics["params"].dump(), R"({"x":[1],"metrics.loss":[3]})");
  EXPECT_EQ(keys_of_program("\"shell\": false", {"metrics.a=5(.)"})["metrics"].dump(), R"_({"a":"5(.)"})_");
}

TEST_F(Overrides, PlainValuesOfAProgramAreReplaced) {
  const std::string timeout = "\"timeout\": 5";
  EXPECT_EQ(keys_of_program(timeout, {"timeout=0.5"})["timeout"], 0.5);
  EXPECT_EQ(keys_of_program(timeout, {"timeout.grace=1"})["timeout"].dump(), R"({"run":5,"grace":1})");
  EXPECT_EQ(keys_of_program("\"shell\": false", {"timeout=2"})["timeout"], 2);
  const auto keys = keys_of_program(R"("params": {"x": [1, 2]})",
                                    {"flags=underscores", "mode=max", "shell=true", R"(inputs=["a","b"])"});
  EXPECT_EQ(keys["flags"], "underscores");
  EXPECT_EQ(keys["mode"], "max");
  EXPECT_EQ(keys["shell"], true);
  EXPECT_EQ(keys["inputs"].size(), 2u);
  const auto texts = keys_of_program(R"("shell": false)", {"cwd=/a,b", "objective=1,x", "name=c,d"});
  EXPECT_EQ(texts["cwd"], "/a,b");
  EXPECT_EQ(texts["objective"], "1,x");
  EXPECT_EQ(texts["name"], "c,d");
}

TEST_F(Overrides, OptionsOfNetworksAreNoParametersOfAProgram) {
  LoadOptions options;
  options.epochs = "2";
  options.seed = "3";
  options.deterministic = false;
  EXPECT_EQ(SweepFolder().error(R"({"command": ["true"]})", {}, options),
            "--epochs 2: is for networks, want epochs=2 for a parameter of the program\n"
            "--no-deterministic: is for networks, want deterministic=false for a parameter of the program");
}

TEST_F(Overrides, TheOptionsForEpochsAndSeedAreOverrides) {
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

TEST_F(Overrides, TheDeterministicOptionReplacesAnAxis) {
  LoadOptions options;
  for (const bool deterministic : {true, false}) {
    options.deterministic = deterministic;
    const Sweep sweep =
        folder.load(SweepFolder::with(R"("params": {"deterministic": [true, false]})"), {}, options);
    ASSERT_EQ(sweep.runs.size(), 1u);
    EXPECT_EQ(sweep.runs[0].deterministic, deterministic);
  }
}

}  // namespace sweep::overrides_test
