#include "runmanager/tensorboard/network_graph.h"
#include "tests/support/growth.h"

namespace sweep::network_graph_test {

using tbwriter::GraphAttribute, tbwriter::GraphNode, tbwriter::GraphShape;

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
  EXPECT_THAT(names,
              ElementsAre("images", "conv1/weight", "conv1/bias", "conv1/Conv2d", "relu1/ReLU",
                          "flatten/Flatten", "out/weight", "out/bias", "out/Linear", "labels", "loss"));
  EXPECT_THAT(node(graph, "conv1/Conv2d").inputs, ElementsAre("images", "conv1/weight", "conv1/bias"));
  EXPECT_THAT(node(graph, "loss").inputs, ElementsAre("out/Linear", "labels"));
}

const tbwriter::NodeProfile& profile_of(const std::vector<tbwriter::NodeProfile>& nodes,
                                        const std::string& name) {
  const auto at = std::find_if(nodes.begin(), nodes.end(),
                               [&](const tbwriter::NodeProfile& n) { return n.node == name; });
  if (at == nodes.end()) throw std::runtime_error("no profile of " + name);
  return *at;
}

TEST(NetworkProfile, NamesNodesOfTheGraphWithTimeMemoryAndKnownShapes) {
  const Network network = small_cnn("my/net");
  const tbwriter::Graph graph = network_graph(network, {});
  const std::vector<LayerProfile> layers = {
      {"conv1", 0.0125, 4096}, {"relu1", 0, 0}, {"flatten", 1e-9, 0}, {"out", 0.002, 512}, {"gone", 1, 1}};
  EXPECT_TRUE(shares_times(layers));
  EXPECT_FALSE(shares_times(std::span(layers).last(2)));
  const auto nodes = network_profile(network, {}, layers, 100, 5000);
  ASSERT_EQ(nodes.size(), graph.nodes.size());
  for (const tbwriter::NodeProfile& profile : nodes) {
    EXPECT_EQ(node(graph, profile.node).device, profile.device);
    EXPECT_EQ(profile.device, "/device:CPU:0");
    EXPECT_GT(profile.duration_micros + profile.memory_bytes, 0)
        << profile.node << " would be drawn as unused";
  }
  const auto &conv = profile_of(nodes, "conv1/Conv2d"), &relu = profile_of(nodes, "relu1/ReLU");
  EXPECT_EQ(conv.start_micros, 5000);
  EXPECT_EQ(conv.memory_bytes, 4096);
  EXPECT_THAT(conv.output_shapes, ElementsAre(GraphShape{100, 6, 24, 24}));
  // 2·25·3456 operations and one per output, against one per output: 12.5 ms · 51/52 and · 1/52.
  EXPECT_EQ(conv.duration_micros, 12260);
  EXPECT_EQ(relu.duration_micros, 240);
  EXPECT_EQ(relu.start_micros, 17260);
  EXPECT_EQ(relu.memory_bytes, 100 * 3456 * 4) << "its own output";
  EXPECT_EQ(profile_of(nodes, "flatten/Flatten").duration_micros, 1)
      << "what ran must not look as if it had not";
  EXPECT_EQ(profile_of(nodes, "out/Linear").start_micros, 17501);
  EXPECT_EQ(profile_of(nodes, "out/Linear").memory_bytes, 512);
  EXPECT_EQ(profile_of(nodes, "conv1/weight").memory_bytes, 6 * 25 * 4);
  EXPECT_THAT(profile_of(nodes, "images").output_shapes, ElementsAre(GraphShape{100, 1, 28, 28}));
}

TEST(NetworkGraph, SaysNothingTwice) {
  for (const GraphNode& n : network_graph(small_cnn(), {}).nodes) {
    for (const auto& [key, value] : n.attributes) {
      EXPECT_FALSE(key == "shape" || key == "output_shape") << n.name << ": the writer adds output_shapes";
    }
  }
}

TEST(NetworkGraph, GivesShapesWithAnUnknownBatchDimension) {
  const tbwriter::Graph graph = network_graph(small_cnn(), {});
  EXPECT_THAT(node(graph, "images").output_shapes, ElementsAre(GraphShape{-1, 1, 28, 28}));
  EXPECT_THAT(node(graph, "conv1/Conv2d").output_shapes, ElementsAre(GraphShape{-1, 6, 24, 24}));
  EXPECT_THAT(node(graph, "conv1/weight").output_shapes, ElementsAre(GraphShape{6, 1, 5, 5}));
  EXPECT_THAT(node(graph, "out/Linear").output_shapes, ElementsAre(GraphShape{-1, 10}));
}

TEST(NetworkGraph, GivesArgumentsAndParameterCounts) {
  const tbwriter::Graph graph = network_graph(small_cnn(), {});
  const auto& attributes = node(graph, "conv1/Conv2d").attributes;
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

TEST(NetworkGraph, HasUniqueNamesAndInputsThatExistWhateverTheLayersAreCalled) {
  for (const char* layer : {"images", "labels", "loss", "x:0 ^y"}) {
    const Network network(
        {"net", {{"flatten", "flatten", {}}, {layer, "linear", {{"out_features", std::int64_t{2}}}}}},
        {1, 2, 2});
    const tbwriter::Graph graph = network_graph(network, {});
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
    for (const auto& profile : network_profile(network, {}, {}, 8, 0))
      EXPECT_NO_THROW(node(graph, profile.node));
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
  EXPECT_THAT(node(graph, "block1/conv1/Conv2d").inputs,
              ElementsAre("images", "block1/conv1/weight", "block1/conv1/bias"));
  EXPECT_THAT(node(graph, "block1/shortcut/0/conv/Conv2d").inputs[0], "images");
  EXPECT_THAT(node(graph, "block1/Add").inputs,
              ElementsAre("block1/bn1/BatchNorm2d", "block1/shortcut/0/conv/Conv2d"));
  EXPECT_EQ(node(graph, "block1/Add").op, "Add");
  EXPECT_THAT(node(graph, "block2/relu/ReLU").inputs, ElementsAre("block1/Add"));
  EXPECT_THAT(node(graph, "block2/Add").inputs, ElementsAre("block2/relu/ReLU", "block1/Add"));
  EXPECT_THAT(node(graph, "flatten/Flatten").inputs, ElementsAre("block2/Add"));
}

TEST(NetworkGraph, ShowsBuffersBesideParameters) {
  const tbwriter::Graph graph = network_graph(nested(), {});
  EXPECT_THAT(node(graph, "block1/bn1/BatchNorm2d").inputs,
              ElementsAre("block1/conv1/Conv2d", "block1/bn1/weight", "block1/bn1/bias",
                          "block1/bn1/running_mean", "block1/bn1/running_var"));
  const GraphNode& mean = node(graph, "block1/bn1/running_mean");
  EXPECT_EQ(mean.op, "Buffer");
  EXPECT_THAT(mean.output_shapes, ElementsAre(GraphShape{3}));
  EXPECT_THAT(mean.attributes,
              Contains(Pair("name", GraphAttribute(std::string("block1.bn1.running_mean")))));
  EXPECT_EQ(node(graph, "block1/bn1/weight").op, "Parameter");
}

TEST(NetworkGraph, GivesNoNodeTheNameOfAScope) {
  const tbwriter::Graph graph = network_graph(nested("Add", "Add_"), {});
  EXPECT_EQ(node(graph, "block1/Add__").inputs.size(), 2u);
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
  ASSERT_EQ(nodes.size(), graph.nodes.size());
  for (const tbwriter::NodeProfile& profile : nodes) EXPECT_NO_THROW(node(graph, profile.node));
  EXPECT_THAT(profile_of(nodes, "block1/Add").output_shapes, ElementsAre(GraphShape{8, 3, 4, 4}));
}

TEST(NetworkGraph, TakesLinearTimeForManyLayers) {
  const auto draw = [](std::size_t count) {
    NetworkSpec spec{"net", {{"0", "flatten", {}}, {"1", "linear", {{"out_features", std::int64_t{1}}}}}};
    while (spec.layers.size() < count)
      spec.layers.push_back({std::to_string(spec.layers.size()), "relu", {}});
    const Network network(std::move(spec), {1, 2, 2});
    std::vector<LayerProfile> layers;
    for (const Layer& layer : network.layers()) layers.push_back({layer.name, 0.001, 16});
    EXPECT_EQ(network_graph(network, {}).nodes.size(), count + 5);
    EXPECT_EQ(network_profile(network, {}, layers, 8, 0).size(), count + 5);
  };
  EXPECT_LT(test::growth(draw, 2'000), test::kLinearGrowth);
}

TEST(NetworkGraph, EndsWithTheLossAndItsArguments) {
  const GraphNode plain = node(network_graph(small_cnn(), {}), "loss");
  EXPECT_EQ(plain.op, "CrossEntropyLoss");
  EXPECT_THAT(plain.attributes, ElementsAre(Pair("label_smoothing", GraphAttribute(0.0)),
                                            Pair("reduction", GraphAttribute(std::string("mean")))));
  const auto end_with = [](const char* type, const Arguments& given = {}) {
    return node(network_graph(small_cnn(), {}, make_loss(type, given)), "loss");
  };
  const std::vector weights = {1.0, 2.5};
  EXPECT_THAT(end_with("cross_entropy", {{"label_smoothing", 0.25}, {"class_weights", weights}}).attributes,
              ElementsAre(Pair("class_weights", GraphAttribute(weights)),
                          Pair("label_smoothing", GraphAttribute(0.25)), Pair("reduction", testing::_)));
  EXPECT_EQ(end_with("mse").op, "MSELoss");
  EXPECT_EQ(end_with("l1").op, "L1Loss");
  EXPECT_EQ(end_with("smooth_l1").op, "SmoothL1Loss");
  EXPECT_THAT(end_with("smooth_l1", {{"beta", 0.5}}).attributes, Contains(Pair("beta", GraphAttribute(0.5))));
  EXPECT_EQ(end_with("bce_with_logits").op, "BCEWithLogitsLoss");
  EXPECT_THAT(end_with("mse").attributes,
              ElementsAre(Pair("reduction", GraphAttribute(std::string("mean")))));
}

}  // namespace sweep::network_graph_test
