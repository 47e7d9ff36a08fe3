#include "runmanager/tensorboard/network_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sweep {
namespace {

using tbwriter::GraphAttribute;
using tbwriter::GraphNode;
using tbwriter::GraphShape;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

const GraphNode& node(const tbwriter::Graph& graph, const std::string& name) {
  const auto at = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                               [&](const GraphNode& n) { return n.name == name; });
  if (at == graph.nodes.end()) throw std::runtime_error("no node " + name);
  return *at;
}

Network small_cnn(const std::string& name = "cnn") {
  return Network({name,
                  {{"conv1",
                    "conv2d",
                    {{"out_channels", std::int64_t{6}}, {"kernel_size", std::array<std::int64_t, 2>{5, 5}}}},
                   {"relu1", "relu", {}},
                   {"flatten", "flatten", {}},
                   {"out", "linear", {{"out_features", std::int64_t{10}}}}}},
                 {1, 28, 28});
}

TEST(NetworkGraph, HasAScopePerLayerWithItsOperationAndWeights) {
  const tbwriter::Graph graph = network_graph(small_cnn(), {});
  std::vector<std::string> names;
  for (const GraphNode& n : graph.nodes) names.push_back(n.name);
  EXPECT_THAT(names, ElementsAre("images", "cnn/conv1/weight", "cnn/conv1/bias", "cnn/conv1/Conv2d",
                                 "cnn/relu1/ReLU", "cnn/flatten/Flatten", "cnn/out/weight", "cnn/out/bias",
                                 "cnn/out/Linear", "labels", "loss"));
  EXPECT_THAT(node(graph, "cnn/conv1/Conv2d").inputs,
              ElementsAre("images", "cnn/conv1/weight", "cnn/conv1/bias"));
  EXPECT_THAT(node(graph, "loss").inputs, ElementsAre("cnn/out/Linear", "labels"));
}

TEST(NetworkProfile, NamesNodesOfTheGraphWithTimeMemoryAndKnownShapes) {
  const Network network = small_cnn("my/net");
  const tbwriter::Graph graph = network_graph(network, {});
  const std::vector<LayerProfile> layers = {
      {"conv1", 0.0125, 4096}, {"relu1", 0, 0}, {"flatten", 1e-9, 0}, {"out", 0.002, 512}, {"gone", 1, 1}};
  const auto nodes = network_profile(network, {}, layers, 100, 5000);
  ASSERT_EQ(nodes.size(), 4u);
  for (const tbwriter::NodeProfile& profile : nodes) {
    EXPECT_EQ(node(graph, profile.node).device, profile.device);
    EXPECT_EQ(profile.device, "/device:CPU:0");
  }
  EXPECT_EQ(nodes[0].node, "my_net/conv1/Conv2d");
  EXPECT_EQ(nodes[0].start_micros, 5000);
  EXPECT_EQ(nodes[0].duration_micros, 12500);
  EXPECT_EQ(nodes[0].memory_bytes, 4096);
  EXPECT_THAT(nodes[0].output_shapes, ElementsAre(GraphShape{100, 6, 24, 24}));
  EXPECT_EQ(nodes[1].duration_micros, 0);
  EXPECT_EQ(nodes[2].duration_micros, 1) << "what ran must not look as if it had not";
  EXPECT_EQ(nodes[3].start_micros, 17501);
  EXPECT_THAT(nodes[3].output_shapes, ElementsAre(GraphShape{100, 10}));
}

TEST(NetworkGraph, GivesShapesWithAnUnknownBatchDimension) {
  const tbwriter::Graph graph = network_graph(small_cnn(), {});
  EXPECT_THAT(node(graph, "images").output_shapes, ElementsAre(GraphShape{-1, 1, 28, 28}));
  EXPECT_THAT(node(graph, "cnn/conv1/Conv2d").output_shapes, ElementsAre(GraphShape{-1, 6, 24, 24}));
  EXPECT_THAT(node(graph, "cnn/conv1/weight").output_shapes, ElementsAre(GraphShape{6, 1, 5, 5}));
  EXPECT_THAT(node(graph, "cnn/out/Linear").output_shapes, ElementsAre(GraphShape{-1, 10}));
}

TEST(NetworkGraph, GivesArgumentsAndParameterCounts) {
  const tbwriter::Graph graph = network_graph(small_cnn(), {});
  const auto& attributes = node(graph, "cnn/conv1/Conv2d").attributes;
  EXPECT_THAT(attributes, Contains(Pair("kernel_size", GraphAttribute(std::vector<std::int64_t>{5, 5}))));
  EXPECT_THAT(attributes, Contains(Pair("stride", GraphAttribute(std::vector<std::int64_t>{1, 1}))));
  EXPECT_THAT(attributes, Contains(Pair("out_channels", GraphAttribute(std::int64_t{6}))));
  EXPECT_THAT(attributes, Contains(Pair("bias", GraphAttribute(true))));
  EXPECT_THAT(attributes, Contains(Pair("parameters", GraphAttribute(std::int64_t{6 * 25 + 6}))));
}

TEST(NetworkGraph, NamesTheDeviceOnEveryNode) {
  for (const GraphNode& n : network_graph(small_cnn(), {DeviceType::kCuda, 1}).nodes)
    EXPECT_EQ(n.device, "/device:GPU:1");
  for (const GraphNode& n : network_graph(small_cnn(), {}).nodes) EXPECT_EQ(n.device, "/device:CPU:0");
}

TEST(NetworkGraph, HasUniqueNamesAndInputsThatExistWhateverTheNetworkIsCalled) {
  for (const char* name : {"", "images", "labels", "loss", "a/b", "x:0 ^y"}) {
    const tbwriter::Graph graph = network_graph(small_cnn(name), {});
    std::set<std::string> names;
    for (const GraphNode& n : graph.nodes) {
      EXPECT_TRUE(names.insert(n.name).second) << n.name;
      EXPECT_EQ(n.name.find_first_of(":^ "), std::string::npos) << n.name;
    }
    for (const GraphNode& n : graph.nodes) {
      for (const std::string& input : n.inputs) EXPECT_THAT(names, Contains(input));
      // A node whose name is another's scope would be drawn inside it.
      EXPECT_FALSE(std::any_of(names.begin(), names.end(),
                               [&](const std::string& o) { return o.starts_with(n.name + "/"); }));
    }
  }
}

Network nested(const std::string& inner = "conv1", const std::string& other = "bn1") {
  const auto conv = [](const std::string& name, std::int64_t channels) {
    return LayerSpec{
        name, "conv2d", {{"out_channels", channels}, {"kernel_size", std::array<std::int64_t, 2>{1, 1}}}};
  };
  return Network({"net",
                  {{"block1",
                    "residual",
                    {},
                    {conv(inner, 3), {other, "batch_norm2d"}},
                    {{"0", "sequential", {}, {conv("conv", 3)}}}},
                   {"block2", "residual", {}, {{"relu", "relu"}}},
                   {"flatten", "flatten"},
                   {"out", "linear", {{"out_features", std::int64_t{10}}}}}},
                 {1, 4, 4});
}

TEST(NetworkGraph, HasScopesInScopesAndNodesWhereThePathsOfResidualsMeet) {
  const tbwriter::Graph graph = network_graph(nested(), {});
  EXPECT_THAT(node(graph, "net/block1/conv1/Conv2d").inputs,
              ElementsAre("images", "net/block1/conv1/weight", "net/block1/conv1/bias"));
  EXPECT_THAT(node(graph, "net/block1/shortcut/0/conv/Conv2d").inputs[0], "images");
  EXPECT_THAT(node(graph, "net/block1/Add").inputs,
              ElementsAre("net/block1/bn1/BatchNorm2d", "net/block1/shortcut/0/conv/Conv2d"));
  EXPECT_EQ(node(graph, "net/block1/Add").op, "Add");
  EXPECT_THAT(node(graph, "net/block2/relu/ReLU").inputs, ElementsAre("net/block1/Add"));
  EXPECT_THAT(node(graph, "net/block2/Add").inputs, ElementsAre("net/block2/relu/ReLU", "net/block1/Add"));
  EXPECT_THAT(node(graph, "net/flatten/Flatten").inputs, ElementsAre("net/block2/Add"));
}

TEST(NetworkGraph, ShowsBuffersBesideParameters) {
  const tbwriter::Graph graph = network_graph(nested(), {});
  EXPECT_THAT(node(graph, "net/block1/bn1/BatchNorm2d").inputs,
              ElementsAre("net/block1/conv1/Conv2d", "net/block1/bn1/weight", "net/block1/bn1/bias",
                          "net/block1/bn1/running_mean", "net/block1/bn1/running_var"));
  const GraphNode& mean = node(graph, "net/block1/bn1/running_mean");
  EXPECT_EQ(mean.op, "Buffer");
  EXPECT_THAT(mean.output_shapes, ElementsAre(GraphShape{3}));
  EXPECT_THAT(mean.attributes,
              Contains(Pair("name", GraphAttribute(std::string("block1.bn1.running_mean")))));
  EXPECT_EQ(node(graph, "net/block1/bn1/weight").op, "Parameter");
}

TEST(NetworkGraph, GivesNoNodeTheNameOfAScope) {
  const tbwriter::Graph graph = network_graph(nested("Add", "Add_"), {});
  EXPECT_EQ(node(graph, "net/block1/Add__").inputs.size(), 2u);
  for (const GraphNode& n : graph.nodes) {
    EXPECT_FALSE(std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& o) {
      return o.name.starts_with(n.name + "/");
    })) << n.name;
  }
}

TEST(NetworkProfile, FindsTheNodesOfInnerLayersAndSums) {
  const Network network = nested();
  std::vector<LayerProfile> layers;
  for (const Layer& layer : network.layers()) layers.push_back({layer.name, 0.001, 16});
  const tbwriter::Graph graph = network_graph(network, {});
  const auto nodes = network_profile(network, {}, layers, 8, 0);
  ASSERT_EQ(nodes.size(), network.layers().size());
  for (const tbwriter::NodeProfile& profile : nodes) EXPECT_NO_THROW(node(graph, profile.node));
  EXPECT_EQ(nodes[3].node, "net/block1/Add");
  EXPECT_THAT(nodes[3].output_shapes, ElementsAre(GraphShape{8, 3, 4, 4}));
}

TEST(NetworkGraph, TakesLinearTimeForManyLayers) {
  constexpr std::size_t kLayers = 60'000;  // Quadratic time would be minutes.
  NetworkSpec spec{"net", {{"0", "flatten", {}}, {"1", "linear", {{"out_features", std::int64_t{1}}}}}};
  while (spec.layers.size() < kLayers)
    spec.layers.push_back({std::to_string(spec.layers.size()), "relu", {}});
  const Network network(std::move(spec), {1, 2, 2});
  std::vector<LayerProfile> layers;
  for (const Layer& layer : network.layers()) layers.push_back({layer.name, 0.001, 16});
  EXPECT_EQ(network_graph(network, {}).nodes.size(), kLayers + 5);
  EXPECT_EQ(network_profile(network, {}, layers, 8, 0).size(), kLayers);
}

TEST(NetworkGraph, EndsWithTheLossAndItsArguments) {
  const GraphNode plain = node(network_graph(small_cnn(), {}), "loss");
  EXPECT_EQ(plain.op, "CrossEntropyLoss");
  EXPECT_THAT(plain.attributes, ElementsAre(Pair("label_smoothing", GraphAttribute(0.0)),
                                            Pair("reduction", GraphAttribute(std::string("mean")))));
  const LossSpec smooth{"cross_entropy", {{"label_smoothing", 0.25}}};
  EXPECT_THAT(node(network_graph(small_cnn(), {}, smooth), "loss").attributes,
              Contains(Pair("label_smoothing", GraphAttribute(0.25))));
  const GraphNode mse = node(network_graph(small_cnn(), {}, {"mse"}), "loss");
  EXPECT_EQ(mse.op, "MSELoss");
  EXPECT_EQ(node(network_graph(small_cnn(), {}, {"l1"}), "loss").op, "L1Loss");
  EXPECT_EQ(node(network_graph(small_cnn(), {}, {"smooth_l1"}), "loss").op, "SmoothL1Loss");
  EXPECT_EQ(node(network_graph(small_cnn(), {}, {"bce_with_logits"}), "loss").op, "BCEWithLogitsLoss");
  EXPECT_THAT(mse.attributes, ElementsAre(Pair("reduction", GraphAttribute(std::string("mean")))));
}

}  // namespace
}  // namespace sweep
