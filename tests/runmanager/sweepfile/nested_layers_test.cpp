// Networks whose layers hold layers: what is read, which keys reach inside, and where mistakes are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/network/network.h"
#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::SweepFolder;

constexpr const char* kNetwork = R"({"layers": [
  {"name": "stem", "type": "sequential", "layers": [
    {"name": "conv", "type": "conv2d", "out_channels": 4, "kernel_size": 3, "padding": 1}, {"type": "relu"}]},
  {"name": "block1", "type": "residual",
   "layers": [{"name": "conv1", "type": "conv2d", "out_channels": 8, "kernel_size": 3, "stride": 2, "padding": 1},
              {"name": "bn1", "type": "batch_norm2d"}],
   "shortcut": [{"type": "conv2d", "out_channels": 8, "kernel_size": 1, "stride": 2}]},
  {"name": "block2", "type": "residual", "layers": [{"name": "bn", "type": "batch_norm2d"}]},
  {"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]})";

class NestedLayers : public ::testing::Test {
 protected:
  NestedLayers() { folder_.write("deep.json", kNetwork); }

  Sweep load(const std::vector<std::string>& overrides = {}, const std::string& more = "") const {
    return folder_.load(R"({"dataset": "mnist", "network": "deep.json")" + more + "}", overrides);
  }

  std::string error(const std::string& layers) const {
    return folder_.error("{\"dataset\": \"mnist\", \"network\": {\"layers\": [\n" + layers +
                         ",\n{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out_features\": 10}]}}");
  }

  SweepFolder folder_;
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

TEST_F(NestedLayers, AreReachedByNameAndByIndex) {
  const auto channels = [](const Sweep& sweep, const std::string& parameter) {
    const Network network(sweep.runs.at(0).network, {1, 28, 28});
    for (const Parameter& p : network.parameters()) {
      if (p.name == parameter) return p.shape[0];
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(channels(load({"network.layers.stem.layers.conv.out_channels=6"}), "stem.conv.weight"), 6);
  EXPECT_EQ(channels(load({"network.layers.0.layers.0.out_channels=7"}), "stem.conv.weight"), 7);
  const Sweep both = load({"network.layers.block1.layers.conv1.out_channels=5",
                           "network.layers.block1.shortcut.0.out_channels=5"});
  EXPECT_EQ(channels(both, "block1.conv1.weight"), 5);
  EXPECT_EQ(channels(both, "block1.shortcut.0.weight"), 5);
}

TEST_F(NestedLayers, CanBeAxesZipsAndConditionsWithTheTypeOfTheArgument) {
  const Sweep sweep = load({}, R"(, "params": {"network.layers.block1.layers.conv1.out_channels": [4, 6],
      "network.layers.block1.shortcut.0.out_channels": [4, 6], "network.layers.block2.layers.bn.momentum": [1, 0.5]},
    "zip": [["network.layers.block1.layers.conv1.out_channels", "network.layers.block1.shortcut.0.out_channels"]],
    "exclude": [{"network.layers.block1.layers.conv1.out_channels": 4, "network.layers.block2.layers.bn.momentum": 1}])");
  ASSERT_EQ(sweep.runs.size(), 3u);
  EXPECT_EQ(sweep.runs[0].params[1].second, ParamValue(std::int64_t{4}));
  EXPECT_EQ(sweep.runs[1].params[2].second, ParamValue(1.0)) << "a number, though it is written as 1";
  const Network network(sweep.runs[1].network, {1, 28, 28});
  EXPECT_EQ(network.layers()[5].output, (Shape{6, 14, 14}));
}

TEST_F(NestedLayers, TheResolvedSettingsAreASweepFileOfTheSameRun) {
  const RunConfig run = load({"network.layers.block1.layers.bn1.eps=0.5"}).runs[0];
  nlohmann::ordered_json resolved = run.resolved;
  EXPECT_EQ(resolved["network"]["layers"][1]["layers"][1]["eps"], 0.5);
  EXPECT_EQ(resolved["network"]["layers"][1]["shortcut"][0]["padding"], (nlohmann::ordered_json{0, 0}));
  EXPECT_FALSE(resolved["network"]["layers"][2].contains("shortcut"));
  resolved.erase("repeat");
  const Sweep again = folder_.load(resolved.dump());
  EXPECT_EQ(again.runs.at(0).resolved, run.resolved);
  EXPECT_EQ(layer_names(again.runs[0]), layer_names(run));
  EXPECT_NE(load().runs[0].resolved.dump(), run.resolved.dump()) << "another network is another run";
}

TEST_F(NestedLayers, AnEmptyShortcutIsTheInputItself) {
  const std::string start = R"({"dataset": "mnist", "network": {"layers": [{"name": "b", "type": "residual",
      "layers": [{"type": "tanh"}])";
  const std::string end = R"(}, {"type": "flatten"}, {"type": "linear", "out_features": 10}]}})";
  const RunConfig with = folder_.load(start + R"(, "shortcut": [])" + end).runs[0];
  EXPECT_EQ(with.resolved, folder_.load(start + end).runs[0].resolved);
}

TEST_F(NestedLayers, MistakesAreReportedWhereTheyStand) {
  EXPECT_EQ(error(R"({"type": "residual"})"),
            "s.json:2:1: network.layers.0: residual needs \"layers\", a list of layers");
  EXPECT_EQ(error(R"({"type": "sequential", "layers": []})"),
            "s.json:2:34: network.layers.0.layers: got an empty list, want a list with at least one layer");
  EXPECT_EQ(error(R"({"type": "residual", "layers": [{"type": "relu"}], "shortcut": "conv"})"),
            "s.json:2:64: network.layers.0.shortcut: got \"conv\", want a list of layers");
  EXPECT_EQ(error(R"({"type": "sequential", "layers": [{"type": "relu"}], "shortcut": []})"),
            "s.json:2:54: network.layers.0.shortcut: sequential has no argument \"shortcut\", allowed: "
            "layers");
  EXPECT_EQ(error(R"({"type": "residual", "layers": [{"type": "relu"}], "shortcuts": []})"),
            "s.json:2:52: network.layers.0.shortcuts: residual has no argument \"shortcuts\", allowed: "
            "layers, shortcut, did you mean \"shortcut\"?");
  EXPECT_EQ(error(R"({"type": "relu", "layers": []})"),
            "s.json:2:18: network.layers.0.layers: relu has no argument \"layers\", it takes none");
  EXPECT_EQ(error(R"({"type": "sequential", "layers": [{"type": "relu"}, {"type": "dropout", "p": 2}]})"),
            "s.json:2:78: network.layers.0.layers.1.p: got 2, want a number >= 0 and <= 1");
  EXPECT_THAT(error(R"({"type": "residual", "layers": [{"type": "relu"}], "shortcut": [{"type": "rleu"}]})"),
              HasSubstr("s.json:2:74: network.layers.0.shortcut.0.type: got \"rleu\", want "));
  EXPECT_EQ(
      error(
          R"({"type": "sequential", "layers": [{"name": "a", "type": "relu"}, {"name": "a", "type": "relu"}]})"),
      "s.json:2:66: network.layers.0.layers.1: a second layer is called \"a\", want different names");
  EXPECT_THAT(
      error(R"({"type": "residual", "layers": [{"name": "shortcut", "type": "relu"}], "shortcut": []})"),
      HasSubstr("s.json:2:33: network.layers.0.layers.0: a layer is called \"shortcut\""));
}

TEST_F(NestedLayers, MayBearTheNamesOfLayersElsewhere) {
  const std::string block = R"(", "type": "sequential", "layers": [{"name": "relu", "type": "relu"}]},)";
  const Sweep sweep = folder_.load(R"({"dataset": "mnist", "network": {"layers": [{"name": "relu)" + block +
                                   R"({"name": "b)" + block +
                                   R"({"type": "flatten"}, {"type": "linear", "out_features": 10}]}})");
  EXPECT_THAT(layer_names(sweep.runs[0]), ElementsAre("relu.relu", "b.relu", "2", "3"));
}

TEST_F(NestedLayers, ShapesThatDoNotFitAreReportedAtTheInnerLayer) {
  EXPECT_THAT(
      error("{\"type\": \"relu\"}, {\"name\": \"a\", \"type\": \"sequential\", \"layers\": [{\"type\": "
            "\"relu\"},\n"
            "{\"name\": \"b\", \"type\": \"residual\", \"layers\": [{\"type\": \"relu\"}], \"shortcut\": [\n"
            "{\"type\": \"conv2d\", \"out_channels\": 1, \"kernel_size\": 29}]}]}"),
      HasSubstr("s.json:4:1: network.layers.1.layers.1.shortcut.0: layer \"a.b.shortcut.0\" (conv2d): "
                "kernel_size [29, 29] is larger than its input [1, 28, 28]"));
  EXPECT_THAT(error("{\"name\": \"a\", \"type\": \"sequential\", \"layers\": [{\"type\": \"tanh\"},\n"
                    "{\"name\": \"b\", \"type\": \"residual\", \"layers\": [\n"
                    "{\"type\": \"conv2d\", \"out_channels\": 2, \"kernel_size\": 1}]}]}"),
              HasSubstr("s.json:3:1: network.layers.0.layers.1: layer \"a.b\" (residual): its layers give "
                        "[2, 28, 28], but its shortcut gives [1, 28, 28]"));
}

TEST_F(NestedLayers, MistakesInPathsNameWhatThereIs) {
  const std::string file = R"({"dataset": "mnist", "network": "deep.json"})";
  EXPECT_EQ(folder_.error(file, {"network.layers.block1.layers.conv2.bias=true"}),
            "override \"network.layers.block1.layers.conv2.bias=true\": "
            "network.layers.block1.layers.conv2.bias: there is no \"conv2\", want an index from 0 to 1 or a "
            "name: conv1 or bn1, did you mean \"conv1\"?");
  EXPECT_THAT(folder_.error(file, {"network.layers.stem.shortcut.0.bias=true"}),
              HasSubstr("sequential has no argument \"shortcut\", allowed: layers"));
  EXPECT_THAT(folder_.error(file, {"network.layers.block1.layers.conv1.stride=[2,0]"}),
              HasSubstr("got a list of 2, want an integer, or a pair of integers, >= 1"));
}

}  // namespace
}  // namespace sweep
