// Networks whose layers hold layers: what is read, which keys reach inside.

#include "core/network/network.h"
#include "runmanager/records/run_identity.h"
#include "tests/support/sweep_folder.h"

#include "tests/support/test.h"

namespace sweep::nested_layers_test {

using testing::names_of, testing::SweepFolder;

constexpr const char* kDeepNetwork = R"({"layers": [
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
  NestedLayers() { folder_.write("deep.json", kDeepNetwork); }

  Sweep load(const std::vector<std::string>& overrides = {}, const std::string& more = "") const {
    return folder_.load(R"({"dataset": "mnist", "network": "deep.json")" + more + "}", overrides);
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

// What a pool's stride is if it is left out is written only here, and earlier versions left it out.
TEST_F(NestedLayers, APoolsStrideThatIsLeftOutIsWrittenDown) {
  const auto config = [this](const std::string& stride) {
    folder_.write("deep.json",
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

TEST_F(NestedLayers, MayBearTheNamesOfLayersElsewhere) {
  const std::string block = R"(", "type": "sequential", "layers": [{"name": "relu", "type": "relu"}]},)";
  const Sweep sweep = folder_.load(R"({"dataset": "mnist", "network": {"layers": [{"name": "relu)" + block +
                                   R"({"name": "b)" + block +
                                   R"({"type": "flatten"}, {"type": "linear", "out_features": 10}]}})");
  EXPECT_THAT(layer_names(sweep.runs[0]), ElementsAre("relu.relu", "b.relu", "2", "3"));
}

}  // namespace sweep::nested_layers_test
