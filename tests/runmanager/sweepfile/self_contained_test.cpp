// What a sweep leaves as sweep.json gives the same runs again, wherever that file lies.
#include "runmanager/sweepfile/self_contained.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "tests/support/sweep_folder.h"

namespace sweep::self_contained_test {

using Json = nlohmann::ordered_json;

// sweep.json as SweepRunner writes it.
std::string left_by(const Sweep& sweep) {
  Json file = sweep.resolved;
  file["runs"] = names_of(sweep);
  file["excluded"] = Json::array();
  file["file"] = sweep.file.string();
  file["provenance"] = {{"version", "1"}};
  return file.dump(2);
}

Sweep load_with_device(const fs::path& file, const std::vector<std::string>& overrides = {}) {
  LoadOptions options;
  options.cuda_device_count = 1;
  return load_sweep(file, overrides, options);
}

void expect_same_runs_again(const Sweep& sweep) {
  const SweepFolder elsewhere;
  const Sweep again = load_with_device(elsewhere.write("deep/below/sweep.json", left_by(sweep)));
  EXPECT_EQ(again.name, sweep.name);
  EXPECT_EQ(again.keys, sweep.keys);
  EXPECT_EQ(names_of(again), names_of(sweep));
  ASSERT_EQ(again.runs.size(), sweep.runs.size());
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    EXPECT_EQ(again.runs[i].resolved, sweep.runs[i].resolved) << sweep.runs[i].name;
    EXPECT_EQ(again.runs[i].params, sweep.runs[i].params) << sweep.runs[i].name;
  }
  EXPECT_EQ(again.excluded.size(), sweep.excluded.size());
  EXPECT_EQ(again.resolved, sweep.resolved) << "nor does it change the third time";
}

constexpr const char* kNetwork =
    R"({"layers": [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]})";
constexpr const char* kNamed =
    R"({"name": "named", "layers": [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]})";

class SelfContained : public ::testing::Test {
 protected:
  SelfContained() {
    folder_.write("networks/small.json", kNetwork);
    folder_.write("networks/other.json", kNamed);
    folder_.write(
        "more/small.json",
        R"({"layers": [{"type": "flatten"}, {"type": "relu"}, {"name": "out", "type": "linear", "out_features": 10}]})");
  }
  SweepFolder folder_;
};

TEST_F(SelfContained, EveryShippedSweepComesBackAsItWas) {
  int sweeps = 0;
  for (const auto& file : fs::directory_iterator(fs::path(SWEEP_SOURCE_DIR) / "sweeps")) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    expect_same_runs_again(load_with_device(file.path()));
    ++sweeps;
  }
  EXPECT_GE(sweeps, 6);
}

TEST_F(SelfContained, SoDoesASweepWithEverythingThatAFileCanHave) {
  const fs::path file = folder_.write("s.json", R"({
    "dataset": {"name": "mine", "path": "data", "validation": 0.25}, "network": "net.json", "repeats": 2,
    "init": "w/all.safetensors",
    "params": {"network": ["networks/small.json", "networks/other.json", "more/small.json"],
               "init": ["w/a.safetensors", "w/b.safetensors"], "dataset.path": ["one/data", "two/data"],
               "lr": {"logspace": [0.001, 0.1, 3]}, "batch_size": [10, 20, 30],
               "optimizer": ["sgd", "adam"], "momentum": [0.5, 0.9]},
    "grids": [{"seed": [1, 2]}, {"seed": [2, 3], "network": ["net.json"]}],
    "zip": [["lr", "batch_size"]], "when": {"momentum": {"optimizer": "sgd"}},
    "exclude": [{"network": "more/small.json", "init": "w/a.safetensors"}, {"dataset.path": ["two/data"], "lr": 0.1}]})");
  const Sweep sweep = load_with_device(
      file, {"epochs=4", fmt::format("network={0}/networks/small.json,{0}/more/small.json,{0}/net.json",
                                     folder_.path().string())});
  EXPECT_GT(sweep.runs.size(), 50u);
  EXPECT_GT(sweep.excluded.size(), 10u);
  expect_same_runs_again(sweep);
  expect_same_runs_again(load_with_device(file));
}

TEST_F(SelfContained, SoDoesARandomSearch) {
  const fs::path file = folder_.write("s.json", R"({"dataset": "mnist", "network": "net.json",
    "search": {"method": "random", "trials": 8, "metric": "Loss/train", "points": [{"lr": 0.0123456}]},
    "params": {"lr": {"log_uniform": [0.0001, 0.1]}, "batch_size": [10, 100]}})");
  const Sweep sweep = load_with_device(file, {"search.trials=9"});
  EXPECT_EQ(sweep.runs.size(), 9u);
  expect_same_runs_again(sweep);
}

TEST_F(SelfContained, SoDoesOneWithFewerValuesThanItsRulesAreFor) {
  const fs::path file = folder_.write(
      "s.json",
      SweepFolder::with(
          R"("params": {"lr": {"logspace": [0.001, 0.1, 4]}, "optimizer": ["adam", {"name": "sgd"}], "momentum": [0.5, 0.9]},
         "when": {"momentum": {"optimizer": "sgd"}}, "exclude": [{"lr": [0.1, 0.2]}])"));
  const Sweep fewer = load_with_device(file, {"optimizer=adam", "lr=0.3,0.4"});
  EXPECT_EQ(fewer.runs.size(), 2u);
  expect_same_runs_again(fewer);
}

TEST_F(SelfContained, PathsOfTheCommandLineAreThoseOfTheCurrentDirectory) {
  const fs::path file =
      folder_.write("s.json", R"({"dataset": {"name": "mine", "path": "data"}, "network": "net.json"})");
  const Sweep sweep = load_with_device(file, {"init=w.safetensors", "dataset.path=a/x,b/x"});
  EXPECT_EQ(sweep.runs[0].init, fs::current_path() / "w.safetensors");
  EXPECT_EQ(sweep.runs[1].dataset.path, fs::current_path() / "b/x");
  EXPECT_THAT(names_of(sweep), ElementsAre("dataset.path=a%2Fx", "dataset.path=b%2Fx"));
  expect_same_runs_again(sweep);
  EXPECT_THAT(folder_.error(SweepFolder::with("\"lr\": 1"), {"network=net.json"}),
              HasSubstr("got \"net.json\", want a network file; net.json: cannot open"));
  const Sweep program = folder_.load(R"({"command": ["true"], "cwd": "data", "inputs": ["a"]})", {"cwd=b"});
  EXPECT_EQ(program.resolved["cwd"], (fs::current_path() / "b").string());
  EXPECT_EQ(program.resolved["inputs"][0], (folder_.path() / "a").string());
  EXPECT_EQ(folder_.load(R"({"command": ["true"]})", {R"(inputs=["a","b"])"}).resolved["inputs"].size(), 2u);
}

TEST_F(SelfContained, ConditionsKnowANetworkByItsFileAndByItsName) {
  const std::vector<std::string> texts = {"networks/other.json", "./networks/../networks/other.json", "named",
                                          (folder_.path() / "networks/other.json").string()};
  for (const std::string& network : texts) {
    const Sweep sweep = folder_.load(fmt::format(
        R"({{"dataset": "mnist", "params": {{"network": ["networks/small.json", "networks/other.json"]}},
             "exclude": [{{"network": "{}"}}]}})",
        network));
    EXPECT_THAT(names_of(sweep), ElementsAre("network=small")) << network;
    expect_same_runs_again(sweep);
  }
}

TEST_F(SelfContained, ConditionsKnowThePlainNetworkByItsFile) {
  const std::string file = R"({"dataset": "mnist", "network": "networks/small.json",
    "params": {"seed": [1, 2], "lr": [0.1, 0.2]}, "exclude": [{"network": "networks/other.json", "seed": 1}],
    "when": {"lr": {"network": "networks/small.json"}}})";
  EXPECT_EQ(folder_.load(file).runs.size(), 4u);
  const Sweep sweep = folder_.load(file, {"network=" + (folder_.path() / "networks/other.json").string()});
  EXPECT_THAT(names_of(sweep), ElementsAre("seed=2"));
  expect_same_runs_again(sweep);
}

TEST(ShortPaths, AreAsManyPartsAsTellThemApart) {
  EXPECT_THAT(short_paths({"/a/b/w.st"}), ElementsAre(Pair("/a/b/w.st", "w.st")));
  EXPECT_THAT(short_paths({"/a/b/w.st", "/a/b/v.st", "/a/b/w.st"}),
              UnorderedElementsAre(Pair("/a/b/w.st", "w.st"), Pair("/a/b/v.st", "v.st")));
  EXPECT_THAT(short_paths({"/a/b/w.st", "/a/c/w.st"}),
              UnorderedElementsAre(Pair("/a/b/w.st", "b/w.st"), Pair("/a/c/w.st", "c/w.st")));
  EXPECT_THAT(short_paths({"/w.st", "/a/w.st", "/"}),
              UnorderedElementsAre(Pair("/w.st", "w.st"), Pair("/a/w.st", "a/w.st"), Pair("/", "")));
}

}  // namespace sweep::self_contained_test
