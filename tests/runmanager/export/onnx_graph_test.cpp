// The graph of an exported network: its operators, their order and attributes, and its arrays.
#include "proto/onnx.pb.h"
#include "runmanager/export/model_files.h"
#include "tests/support/test_networks.h"

namespace sweep::onnx_graph_test {

using onnx_format::GraphProto, onnx_format::NodeProto;

using Pair = std::array<std::int64_t, 2>;

SampleFormat format_of(Shape shape, bool bytes) {
  SampleFormat format;
  format.shape = std::move(shape);
  format.bytes = bytes;
  format.class_names = {"a", "b"};
  return format;
}

// Every value is made once, before it is read, and the last one is the output.
void expect_connected(const GraphProto& graph) {
  std::set<std::string> known = {kOnnxInput};
  for (const auto& tensor : graph.initializer())
    EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
  for (const NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) EXPECT_TRUE(known.contains(input)) << input;
    for (const std::string& output : node.output()) EXPECT_TRUE(known.insert(output).second) << output;
  }
  EXPECT_TRUE(known.contains(kOnnxOutput));
}

GraphProto graph_of(std::vector<LayerSpec> layers, const SampleFormat& format) {
  const Network network({"net", std::move(layers)}, format.shape);
  GraphProto graph = onnx_graph(network, {initial_parameters(network, 1), initial_buffers(network)}, format);
  expect_connected(graph);
  return graph;
}

std::vector<std::string> operators(const GraphProto& graph) {
  std::vector<std::string> types;
  for (const NodeProto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

std::vector<std::int64_t> integers(const NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.type() == onnx_format::AttributeProto::INT) return {attribute.i()};
    return {attribute.ints().begin(), attribute.ints().end()};
  }
  return {};
}

const onnx_format::TensorProto* array(const GraphProto& graph, const std::string& name) {
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

std::vector<float> values(const onnx_format::TensorProto& tensor) {
  std::vector<float> floats(tensor.raw_data().size() / sizeof(float));
  std::memcpy(floats.data(), tensor.raw_data().data(), tensor.raw_data().size());
  return floats;
}

TEST(OnnxGraph, NormalisesItsInput) {
  SampleFormat format = format_of({3, 4, 4}, true);
  format.transform = {{0.1f, 0.2f, 0.3f}, {0.5f, 0.6f, 0.7f}};
  const GraphProto graph = graph_of({test::flatten("flat"), test::linear("out", 2)}, format);
  EXPECT_THAT(operators(graph), ElementsAre("Div", "Sub", "Div", "Flatten", "Gemm"));
  EXPECT_THAT(values(*array(graph, graph.node(0).input(1))), ElementsAre(255));
  EXPECT_THAT(array(graph, graph.node(1).input(1))->dims(), ElementsAre(3, 1, 1));
  EXPECT_THAT(values(*array(graph, graph.node(2).input(1))), ElementsAre(0.5f, 0.6f, 0.7f));
  EXPECT_THAT(array(graph, "out.weight")->dims(), ElementsAre(2, 48));
  EXPECT_THAT(integers(graph.node(4), "transB"), ElementsAre(1));
  const auto& shape = graph.input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(shape.dim(1).dim_value(), 3);
}

TEST(OnnxGraph, HasALayersArguments) {
  const Arguments arguments = {{"out_channels", std::int64_t{4}},
                               {"kernel_size", Pair{3, 2}},
                               {"stride", Pair{2, 1}},
                               {"padding", Pair{1, 0}},
                               {"dilation", Pair{1, 2}},
                               {"groups", std::int64_t{2}},
                               {"bias", false}};
  const GraphProto graph = graph_of({test::layer("conv", "conv2d", arguments),
                                     test::layer("pool", "avg_pool2d", {{"kernel_size", Pair{2, 2}}}),
                                     test::layer("drop", "dropout"), test::flatten("flat")},
                                    format_of({2, 9, 9}, false));
  EXPECT_THAT(operators(graph), ElementsAre("Conv", "AveragePool", "Flatten"));
  const NodeProto& conv = graph.node(0);
  EXPECT_EQ(conv.name(), "conv");
  EXPECT_EQ(conv.input_size(), 2);
  EXPECT_THAT(integers(conv, "kernel_shape"), ElementsAre(3, 2));
  EXPECT_THAT(integers(conv, "strides"), ElementsAre(2, 1));
  EXPECT_THAT(integers(conv, "pads"), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(integers(conv, "dilations"), ElementsAre(1, 2));
  EXPECT_THAT(integers(conv, "group"), ElementsAre(2));
  EXPECT_THAT(integers(graph.node(1), "strides"), ElementsAre(2, 2)) << "the kernel size, if left out";
  EXPECT_THAT(integers(graph.node(1), "count_include_pad"), ElementsAre(1));
}

TEST(OnnxGraph, AddsTheTwoPathsOfAResidual) {
  const GraphProto graph = graph_of({{"block", "residual", {}, {{"act", "relu", {}}}, {}},
                                     {"end", "dropout", {}},
                                     {"flat", "flatten", {}},
                                     {"last", "dropout", {}}},
                                    format_of({1, 2, 2}, false));
  EXPECT_THAT(operators(graph), ElementsAre("Relu", "Add", "Flatten"));
  EXPECT_THAT(graph.node(1).input(), ElementsAre("block.act/output", kOnnxInput));
  EXPECT_EQ(graph.node(2).output(0), kOnnxOutput);
}

TEST(OnnxGraph, OfNoOperatorPassesItsInputOn) {
  const GraphProto graph = graph_of({{"drop", "dropout", {}}}, format_of({3}, false));
  EXPECT_THAT(operators(graph), ElementsAre("Identity"));
}

TEST(OnnxGraph, PoolsWindowsOfDifferentSizesAsPyTorchDoes) {
  const GraphProto graph =
      graph_of({{"pool", "adaptive_avg_pool2d", {{"output_size", Pair{2, 2}}}}, {"flat", "flatten", {}}},
               format_of({1, 3, 5}, false));
  EXPECT_THAT(operators(graph), ElementsAre("MatMul", "MatMul", "Flatten"));
  // Rows 0 and 1, then 1 and 2; columns 0 to 2, then 2 to 4.
  EXPECT_THAT(values(*array(graph, "pool/rows/matrix")), ElementsAre(0.5f, 0.5f, 0, 0, 0.5f, 0.5f));
  constexpr float kThird = 1.0f / 3;
  EXPECT_THAT(values(*array(graph, "pool/columns/matrix")),
              ElementsAre(kThird, 0, kThird, 0, kThird, kThird, 0, kThird, 0, kThird));
}

TEST(OnnxGraph, KnowsEveryLayerType) {
  for (const NamedType& type : layer_types()) {
    if (has_inner_layers(type.name)) continue;
    Arguments arguments;
    for (const ArgumentType& argument : type.arguments) {
      if (argument.default_value || argument.optional) continue;
      arguments[argument.name] = argument.kind == ArgumentKind::kIntegerPair ? ArgumentValue(Pair{2, 2})
                                                                             : ArgumentValue(std::int64_t{2});
    }
    SCOPED_TRACE(type.name);
    const bool is_flat = type.name == "linear";
    graph_of({{"layer", type.name, arguments}, {"flat", "flatten", {}}},
             format_of(is_flat ? Shape{4} : Shape{2, 4, 4}, false));
  }
}

}  // namespace sweep::onnx_graph_test
