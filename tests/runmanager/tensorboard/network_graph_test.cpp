#include "runmanager/tensorboard/network_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/growth.h"
#include "tests/support/test_networks.h"

namespace sweep::network_graph_test {

using tbwriter::GraphAttribute, tbwriter::GraphNode, tbwriter::GraphShape;

// The one of this name.
template <typename T>
const T& find(const std::vector<T>& all, std::string T::*member, const std::string& name) {
  const auto at = std::ranges::find(all, name, member);
  if (at == all.end()) throw std::runtime_error("there is no " + name);
  return *at;
}

const GraphNode& node(const tbwriter::Graph& graph, const std::string& name) {
  return find(graph.nodes, &GraphNode::name, name);
}

Network small_cnn(const std::string& name = "cnn") {
  return Network(
      {name,
       {test::conv("conv1", 6, 5), test::relu("relu1"), test::flatten("flatten"), test::linear("out", 10)}},
      {1, 28, 28});
}

Network nested(const std::string& inner = "conv1", const std::string& other = "bn1") {
  const LayerSpec shortcut{"0", "sequential", {}, {test::conv("conv", 3, 1)}};
  return Network(
      {"net",
       {test::residual("block1", {test::conv(inner, 3, 1), test::norm(other)}, {shortcut}),
        test::residual("block2", {test::relu("relu")}), test::flatten("flatten"), test::linear("out", 10)}},
      {1, 4, 4});
}

// "conv1/Conv2d: Conv2d(images, conv1/weight) -> [-1, 6, 24, 24] bias=true …"
std::string text_of(const GraphNode& node) {
  std::string text = fmt::format("{}: {}({}) -> {}", node.name, node.op, fmt::join(node.inputs, ", "),
                                 fmt::join(node.output_shapes, " "));
  for (const auto& [key, value] : node.attributes)
    std::visit([&, &name = key](const auto& typed) { text += fmt::format(" {}={}", name, typed); }, value);
  return text;
}

std::vector<std::string> texts_of(const tbwriter::Graph& graph) {
  std::vector<std::string> texts;
  for (const GraphNode& node : graph.nodes) texts.push_back(text_of(node));
  return texts;
}

TEST(NetworkGraph, HasAScopePerLayerWithItsOperationAndWeights) {
  EXPECT_THAT(
      texts_of(network_graph(small_cnn(), {})),
      ElementsAre(
          "images: Input() -> [-1, 1, 28, 28]",
          "conv1/weight: Parameter() -> [6, 1, 5, 5] name=conv1.weight parameters=150",
          "conv1/bias: Parameter() -> [6] name=conv1.bias parameters=6",
          "conv1/Conv2d: Conv2d(images, conv1/weight, conv1/bias) -> [-1, 6, 24, 24] bias=true dilation=[1, "
          "1] groups=1 kernel_size=[5, 5] out_channels=6 padding=[0, 0] stride=[1, 1] input_shape=[-1, 1, "
          "28, 28] parameters=156",
          "relu1/ReLU: ReLU(conv1/Conv2d) -> [-1, 6, 24, 24] input_shape=[-1, 6, 24, 24] parameters=0",
          "flatten/Flatten: Flatten(relu1/ReLU) -> [-1, 3456] input_shape=[-1, 6, 24, 24] parameters=0",
          "out/weight: Parameter() -> [10, 3456] name=out.weight parameters=34560",
          "out/bias: Parameter() -> [10] name=out.bias parameters=10",
          "out/Linear: Linear(flatten/Flatten, out/weight, out/bias) -> [-1, 10] bias=true out_features=10 "
          "input_shape=[-1, 3456] parameters=34570",
          "labels: Input() -> [-1]",
          "loss: CrossEntropyLoss(out/Linear, labels) -> [] label_smoothing=0 reduction=mean"));
}

TEST(NetworkGraph, HasScopesInScopesAndNodesWhereThePathsOfResidualsMeet) {
  EXPECT_THAT(
      texts_of(network_graph(nested(), {})),
      testing::IsSupersetOf(
          {"block1/conv1/Conv2d: Conv2d(images, block1/conv1/weight, block1/conv1/bias) -> [-1, 3, 4, 4] "
           "bias=true dilation=[1, 1] groups=1 kernel_size=[1, 1] out_channels=3 padding=[0, 0] stride=[1, "
           "1] input_shape=[-1, 1, 4, 4] parameters=6",
           "block1/bn1/running_mean: Buffer() -> [3] name=block1.bn1.running_mean",
           "block1/bn1/BatchNorm2d: BatchNorm2d(block1/conv1/Conv2d, block1/bn1/weight, block1/bn1/bias, "
           "block1/bn1/running_mean, block1/bn1/running_var) -> [-1, 3, 4, 4] affine=true eps=1e-05 "
           "momentum=0.1 input_shape=[-1, 3, 4, 4] parameters=6",
           "block1/shortcut/0/conv/weight: Parameter() -> [3, 1, 1, 1] name=block1.shortcut.0.conv.weight "
           "parameters=3",
           "block1/Add: Add(block1/bn1/BatchNorm2d, block1/shortcut/0/conv/Conv2d) -> [-1, 3, 4, 4] "
           "input_shape=[-1, 3, 4, 4] parameters=0",
           "block2/relu/ReLU: ReLU(block1/Add) -> [-1, 3, 4, 4] input_shape=[-1, 3, 4, 4] parameters=0",
           "block2/Add: Add(block2/relu/ReLU, block1/Add) -> [-1, 3, 4, 4] input_shape=[-1, 3, 4, 4] "
           "parameters=0",
           "flatten/Flatten: Flatten(block2/Add) -> [-1, 48] input_shape=[-1, 3, 4, 4] parameters=0"}));
}

TEST(NetworkGraph, EndsWithTheLossAndItsArguments) {
  std::vector<std::string> ends;
  for (const auto& [type, given] : std::vector<std::pair<const char*, Arguments>>{
           {"cross_entropy", {}},
           {"cross_entropy", {{"label_smoothing", 0.25}, {"class_weights", std::vector{1.0, 2.5}}}},
           {"mse", {}},
           {"l1", {}},
           {"smooth_l1", {{"beta", 0.5}}},
           {"bce_with_logits", {}}})
    ends.push_back(text_of(node(network_graph(small_cnn(), {}, make_loss(type, given)), "loss")));
  EXPECT_THAT(ends,
              ElementsAre("loss: CrossEntropyLoss(out/Linear, labels) -> [] label_smoothing=0 reduction=mean",
                          "loss: CrossEntropyLoss(out/Linear, labels) -> [] class_weights=[1, 2.5] "
                          "label_smoothing=0.25 reduction=mean",
                          "loss: MSELoss(out/Linear, labels) -> [] reduction=mean",
                          "loss: L1Loss(out/Linear, labels) -> [] reduction=mean",
                          "loss: SmoothL1Loss(out/Linear, labels) -> [] beta=0.5 reduction=mean",
                          "loss: BCEWithLogitsLoss(out/Linear, labels) -> [] reduction=mean"));
}

const tbwriter::NodeProfile& profile_of(const std::vector<tbwriter::NodeProfile>& nodes,
                                        const std::string& name) {
  return find(nodes, &tbwriter::NodeProfile::node, name);
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

TEST(NetworkGraph, NamesTheDeviceOnEveryNode) {
  for (const GraphNode& n : network_graph(small_cnn(), {DeviceType::kCuda, 1}).nodes)
    EXPECT_EQ(n.device, "/device:GPU:1");
  for (const GraphNode& n : network_graph(small_cnn(), {}).nodes) EXPECT_EQ(n.device, "/device:CPU:0");
}

TEST(NetworkGraph, HasUniqueNamesAndInputsThatExistWhateverTheLayersAreCalled) {
  for (const char* layer : {"images", "labels", "loss", "x:0 ^y"}) {
    const Network network({"net", {test::flatten("flatten"), test::linear(layer, 2)}}, {1, 2, 2});
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
    NetworkSpec spec{"net", {test::flatten("0"), test::linear("1", 1)}};
    while (spec.layers.size() < count) spec.layers.push_back(test::relu(std::to_string(spec.layers.size())));
    const Network network(std::move(spec), {1, 2, 2});
    std::vector<LayerProfile> layers;
    for (const Layer& layer : network.layers()) layers.push_back({layer.name, 0.001, 16});
    EXPECT_EQ(network_graph(network, {}).nodes.size(), count + 5);
    EXPECT_EQ(network_profile(network, {}, layers, 8, 0).size(), count + 5);
  };
  EXPECT_LT(test::growth(draw, 2'000), test::kLinearGrowth);
}

}  // namespace sweep::network_graph_test
