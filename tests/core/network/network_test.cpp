#include "core/network/network.h"

#include "core/network/arguments.h"
#include "core/network/layers.h"
#include "tests/support/test_networks.h"

namespace sweep::network_test {

template <class Error>
void expect_error(const std::vector<LayerSpec>& layers, const Shape& input,
                  const std::vector<std::string>& parts) {
  const std::string message = test::message_of<Error>([&] { Network({"n", layers}, input); });
  for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
}

Shape output_of(LayerSpec layer, Shape input) {
  const Network network({"n", {std::move(layer), test::flatten("f")}}, std::move(input));
  return network.layers()[0].output;
}

TEST(Network, IsAsKnownOfTheDeeplizardNetwork) {
  const Network network(test::deeplizard(), {1, 28, 28});
  EXPECT_EQ(network.layers()[0].output, (Shape{6, 24, 24}));
  EXPECT_EQ(network.layers()[2].output, (Shape{6, 12, 12}));
  EXPECT_EQ(network.layers()[3].output, (Shape{12, 8, 8}));
  EXPECT_EQ(network.layers()[6].output, (Shape{192}));
  EXPECT_EQ(network.output(), (Shape{10}));
  const std::span<const Parameter> parameters = network.parameters();
  EXPECT_EQ(parameters[0].name, "conv1.weight");
  EXPECT_EQ(parameters[0].shape, (Shape{6, 1, 5, 5}));
  EXPECT_EQ(parameters[1].name, "conv1.bias");
  EXPECT_EQ(parameters[4].name, "fc1.weight");
  EXPECT_EQ(parameters[4].shape, (Shape{120, 192}));
  EXPECT_EQ(parameters[4].offset, 156u + 1812u);
  EXPECT_EQ(network.parameter_count(), 32998u);  // 156 + 1812 + 23160 + 7260 + 610
  EXPECT_EQ(network.forward_flops(), 464880);
  EXPECT_EQ(network.training_flops(), 1221840);
}

// Nothing needs the gradient of what comes before the first weights: it would be that of the samples.
TEST(Network, CountsNoGradientOfWhatHasNoWeightsBeforeIt) {
  const Network network({"n",
                         {test::relu("first"), test::flatten("f"), test::linear("fc1", 512), test::relu("r"),
                          test::linear("fc2", 10)}},
                        {1, 28, 28});
  EXPECT_EQ(network.training_flops(), 2 * (2 * 784 * 512) + 3 * (2 * 512 * 10));
}

// Values of torch.nn.Conv2d and torch.nn.MaxPool2d.
TEST(Network, WindowsRoundDownAsPyTorchs) {
  using Window = std::array<std::int64_t, 2>;
  EXPECT_EQ(output_of({"c",
                       "conv2d",
                       {{"out_channels", std::int64_t{4}},
                        {"kernel_size", std::int64_t{3}},
                        {"stride", std::int64_t{2}},
                        {"padding", std::int64_t{1}}}},
                      {2, 8, 7}),
            (Shape{4, 4, 4}));
  EXPECT_EQ(output_of({"c", "conv2d", {{"out_channels", std::int64_t{4}}, {"kernel_size", Window{2, 3}}}},
                      {2, 8, 7}),
            (Shape{4, 7, 5}));
  EXPECT_EQ(output_of(test::pool("p", 2), {2, 5, 7}), (Shape{2, 2, 3}));
  EXPECT_EQ(
      output_of(
          {"p",
           "max_pool2d",
           {{"kernel_size", std::int64_t{3}}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}}},
          {2, 5, 7}),
      (Shape{2, 5, 7}));
}

TEST(Network, LayersThatDoNotFitAreNamedWithTheirShapes) {
  const Shape image{1, 28, 28};
  expect_error<ShapeError>({test::linear("fc", 10)}, image, {"\"fc\"", "[1, 28, 28]", "flatten"});
  expect_error<ShapeError>({test::conv("big", 6, 29), test::flatten("f")}, image,
                           {"\"big\"", "[29, 29]", "[1, 28, 28]"});
  expect_error<ShapeError>({test::flatten("f"), test::conv("c", 6, 5)}, image, {"\"c\"", "[784]"});
  expect_error<ShapeError>({test::conv("c", 6, 5)}, image, {"[6, 24, 24]"});
  for (const Shape& input : {Shape{}, Shape{0}, Shape{1, -28, 28}})
    expect_error<ShapeError>({test::flatten("f"), test::linear("fc", 10)}, input, {"each at least 1"});
}

TEST(Network, UnknownTypesRepeatedNamesAndNoLayersAreErrors) {
  expect_error<ConfigError>({{"c", "conv2", {}}}, {1, 28, 28}, {"did you mean \"conv2d\"?"});
  expect_error<ConfigError>({test::flatten("a"), test::relu("a")}, {1, 28, 28}, {"two layers called \"a\""});
  expect_error<ConfigError>({}, {1, 28, 28}, {"has no layers"});
}

TEST(Network, WhatALayerCannotHaveIsAnError) {
  const Shape image{1, 28, 28};
  const std::vector<LayerSpec> inner = {test::flatten("f")};
  expect_error<ConfigError>({{"s", "sequential", {{"bias", true}}, inner}}, image,
                            {"\"s\"", "sequential has no argument \"bias\""});
  expect_error<ConfigError>({{"f", "flatten", {}, inner}}, image, {"\"f\"", "no \"layers\""});
  expect_error<ConfigError>({{"s", "sequential", {}, inner, inner}}, image, {"\"s\"", "no \"shortcut\""});
  for (const char* name : {"a.b", "a/b", ""})
    expect_error<ConfigError>({test::flatten(name)}, image, {"want a name without '.' and '/'"});
}

TEST(Network, NumbersThatAreInfiniteToAnEngineAreErrors) {
  expect_error<ConfigError>({{"l", "leaky_relu", {{"negative_slope", 1e300}}}, test::flatten("f")}, {1, 2, 2},
                            {"negative_slope", "got 1e+300", "<= 3.4028234663852886e+38"});
}

// 2^20 · 2^20 · 2^24 weights, which a std::size_t would count as 0.
TEST(Network, MoreWeightsThanCanBeCountedAreAnError) {
  using Int = std::int64_t;
  std::vector<LayerSpec> layers;
  for (int i = 0; i < 16; ++i) {
    layers.push_back(test::conv("grow" + std::to_string(i), 1, 1));
    layers.back().arguments["padding"] = Int{i < 15 ? 128 : 114};
  }
  layers.push_back(test::conv("wide", Int{1} << 20, 1));
  layers.push_back(test::flatten("f"));
  layers.push_back(test::linear("out", Int{1} << 20));
  expect_error<ShapeError>(layers, {1, 28, 28}, {"\"wide\"", "[1048576, 4096, 4096]", "too many values"});
  layers.erase(layers.end() - 3);
  expect_error<ShapeError>(layers, {1, 28, 28}, {"\"out\"", "[1048576, 16777216]", "too many values"});
}

LayerSpec batch_norm(std::string name) { return {std::move(name), "batch_norm2d", {}}; }

LayerSpec residual(std::string name, std::vector<LayerSpec> layers, std::vector<LayerSpec> shortcut = {}) {
  return {std::move(name), "residual", {}, std::move(layers), std::move(shortcut)};
}

LayerSpec conv_1x1(std::string name, std::int64_t channels) {
  return {std::move(name), "conv2d", {{"out_channels", channels}, {"kernel_size", std::int64_t{1}}}};
}

TEST(Network, FlattensNestedLayersWithDottedNames) {
  const LayerSpec block = residual("block", {conv_1x1("conv1", 8), batch_norm("bn1"), {"relu", "relu", {}}},
                                   {conv_1x1("conv", 8)});
  const LayerSpec stage = {"stage1", "sequential", {}, {block, {"relu", "relu", {}}}, {}};
  const Network network({"n", {conv_1x1("stem", 4), stage, test::flatten("f")}}, {1, 5, 5});
  std::vector<std::string> names;
  for (const Layer& layer : network.layers()) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("stem", "stage1.block.conv1", "stage1.block.bn1", "stage1.block.relu",
                                 "stage1.block.shortcut.conv", "stage1.block", "stage1.relu", "f"));
  EXPECT_EQ(network.layers()[0].inputs, std::vector<std::size_t>{kNetworkInput});
  EXPECT_EQ(network.layers()[4].inputs, std::vector<std::size_t>{0});
  EXPECT_EQ(network.layers()[5].inputs, (std::vector<std::size_t>{3, 4}));
  EXPECT_EQ(network.layers()[6].inputs, std::vector<std::size_t>{5});
}

TEST(Network, ResidualWithoutShortcutAddsItsInput) {
  const Network network({"n", {residual("block", {conv_1x1("conv", 1)}), test::flatten("f")}}, {1, 5, 5});
  EXPECT_EQ(network.layers()[1].type, "residual");
  EXPECT_EQ(network.layers()[1].inputs, (std::vector<std::size_t>{0, kNetworkInput}));
}

TEST(Network, BlocksThatDoNotFitAreErrors) {
  expect_error<ShapeError>({residual("block", {conv_1x1("conv", 8)}), test::flatten("f")}, {1, 5, 5},
                           {"\"block\"", "[8, 5, 5]", "[1, 5, 5]", "shortcut"});
  expect_error<ConfigError>({{"stage", "sequential", {}}, test::flatten("f")}, {1, 5, 5},
                            {"\"stage\"", "\"layers\""});
}

TEST(Network, BatchNormHasParametersAndBuffersAsPyTorchs) {
  const Network network({"n", {conv_1x1("conv", 8), batch_norm("bn"), test::flatten("f")}}, {1, 5, 5});
  EXPECT_EQ(network.parameters()[2].name, "bn.weight");
  EXPECT_EQ(network.parameters()[3].name, "bn.bias");
  EXPECT_EQ(network.buffers()[0].name, "bn.running_mean");
  EXPECT_EQ(network.buffers()[1].name, "bn.running_var");
  EXPECT_EQ(network.buffer_count(), 16u);
  std::vector<float> buffers(8, 0.0f);
  buffers.resize(16, 1.0f);
  EXPECT_EQ(initial_buffers(network), buffers);
  const std::vector<float> parameters = initial_parameters(network, 1);
  EXPECT_EQ(std::vector<float>(parameters.end() - 16, parameters.end() - 8), std::vector<float>(8, 1.0f));
  EXPECT_EQ(std::vector<float>(parameters.end() - 8, parameters.end()), std::vector<float>(8, 0.0f));
}

TEST(Network, LayersAreValuesOfTheirKind) {
  const Network network({"n",
                         {test::pool("p", 2),
                          test::flatten("f"),
                          {"a", "leaky_relu", {{"negative_slope", 0.25}}},
                          {"b", "gelu"}}},
                        {1, 4, 4});
  const std::span<const Layer> layers = network.layers();
  EXPECT_EQ(layers[0].as<layers::MaxPool2d>()->stride, (layers::HeightWidth{2, 2})) << "of the kernel's size";
  EXPECT_EQ(layers[1].as<layers::Activated>(), nullptr);
  EXPECT_EQ(layers[2].as<layers::Activated>()->function, Activation::kLeakyRelu);
  EXPECT_EQ(layers[2].as<layers::Activated>()->coefficient, 0.25f);
  EXPECT_EQ(layers[3].as<layers::Activated>()->coefficient, 0);
  EXPECT_EQ(torch_class("leaky_relu"), "LeakyReLU");
  EXPECT_EQ(torch_class("residual"), "Add");
}

// Values of torch.nn.Conv2d(4, 6, 3, dilation=2, groups=2) on 9×8.
TEST(Network, DilationWidensTheKernelAndGroupsThinTheWeights) {
  const LayerSpec conv = {"conv",
                          "conv2d",
                          {{"out_channels", std::int64_t{6}},
                           {"kernel_size", std::int64_t{3}},
                           {"dilation", std::int64_t{2}},
                           {"groups", std::int64_t{2}}}};
  const Network network({"n", {conv, test::flatten("f")}}, {4, 9, 8});
  EXPECT_EQ(network.layers()[0].output, (Shape{6, 5, 4}));
  EXPECT_EQ(network.parameters()[0].shape, (Shape{6, 2, 3, 3}));
  EXPECT_EQ(network.parameters()[0].fan_in, 18);
  expect_error<ShapeError>({conv, test::flatten("f")}, {3, 9, 8}, {"\"conv\"", "groups 2"});
}

TEST(InitialParameters, AreUniformInPyTorchsInterval) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const std::vector<float> values = initial_parameters(network, 1);
  for (const Parameter& parameter : network.parameters()) {
    SCOPED_TRACE(parameter.name);
    // torch.nn.Linear and Conv2d: uniform in ±1/sqrt(fan_in), whose standard deviation is that over sqrt(3).
    const double bound = 1 / std::sqrt(static_cast<double>(parameter.fan_in));
    double sum = 0, square = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const double x = values[parameter.offset + i];
      EXPECT_LE(std::abs(x), bound * 1.0001);
      sum += x;
      square += x * x;
    }
    if (parameter.count < 1000) continue;  // too few values for statistics
    const auto n = static_cast<double>(parameter.count);
    EXPECT_NEAR(sum / n, 0, 4 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(std::sqrt(square / n), bound / std::sqrt(3.0), 0.03 * bound);
  }
}

TEST(InitialParameters, DependOnTheSeedAlone) {
  const Network network(test::mlp(), {1, 28, 28});
  EXPECT_EQ(initial_parameters(network, 5), initial_parameters(network, 5));
  EXPECT_NE(initial_parameters(network, 5), initial_parameters(network, 6));
}

TEST(InitialParameters, OfTwoParametersAreNotTheSameValues) {
  const Network network({"n", {test::flatten("f"), test::linear("a", 16), test::linear("b", 16)}}, {1, 4, 4});
  const std::vector<float> values = initial_parameters(network, 1);
  const auto& p = network.parameters();
  EXPECT_FALSE(std::equal(values.begin() + static_cast<std::ptrdiff_t>(p[0].offset),
                          values.begin() + static_cast<std::ptrdiff_t>(p[0].offset + p[0].count),
                          values.begin() + static_cast<std::ptrdiff_t>(p[2].offset)));
}

using Pair = std::array<std::int64_t, 2>;

const NamedType& conv2d() { return *find_type(layer_types(), "conv2d"); }

TEST(CompleteArguments, FillsInPyTorchsDefaults) {
  const Arguments a = complete_arguments(
      conv2d(), {{"out_channels", std::int64_t{6}}, {"kernel_size", std::int64_t{5}}}, "layer");
  EXPECT_EQ(std::get<Pair>(a.at("kernel_size")), (Pair{5, 5}));
  EXPECT_EQ(std::get<Pair>(a.at("stride")), (Pair{1, 1}));
  EXPECT_EQ(std::get<Pair>(a.at("padding")), (Pair{0, 0}));
  EXPECT_TRUE(std::get<bool>(a.at("bias")));
}

TEST(CompleteArguments, NamesTheMissingTheUnknownAndTheImpossible) {
  const auto expect = [](const Arguments& given, const std::vector<std::string>& parts) {
    const std::string message =
        test::message_of<ConfigError>([&] { complete_arguments(conv2d(), given, "layer \"c\""); });
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
  };
  const ArgumentValue five = std::int64_t{5};
  expect({{"out_channels", five}}, {"layer \"c\"", "needs \"kernel_size\""});
  expect({{"kernelsize", five}}, {"\"kernelsize\"", "did you mean \"kernel_size\"?"});
  expect({{"out_channels", std::int64_t{0}}, {"kernel_size", five}}, {"got 0", "an integer >= 1"});
  expect({{"out_channels", 1.5}, {"kernel_size", five}}, {"got 1.5"});
}

TEST(ArgumentText, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(to_string(ArgumentValue(0.1)), "0.1");
  EXPECT_EQ(to_string(ArgumentValue(Pair{2, 3})), "[2, 3]");
  EXPECT_EQ(to_string(ArgumentValue(true)), "true");
}

}  // namespace sweep::network_test
