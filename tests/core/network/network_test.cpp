#include "core/network/network.h"

#include "core/network/arguments.h"
#include "core/network/layers.h"
#include "tests/support/reference_data.h"
#include "tests/support/test_networks.h"

namespace sweep::network_test {

using nlohmann::json;

// All that a row may say of its network, by layer or parameter where there are several.
json outcome(const Network& network) {
  json found = {{"forward_flops", network.forward_flops()},
                {"training_flops", network.training_flops()},
                {"parameter_count", network.parameter_count()},
                {"buffer_count", network.buffer_count()}};
  for (const Layer& layer : network.layers()) {
    found["names"].push_back(layer.name);
    found["types"][layer.name] = layer.type;
    found["outputs"][layer.name] = layer.output;
    for (const std::size_t input : layer.inputs)
      found["inputs"][layer.name].push_back(input == kNetworkInput ? "the input"
                                                                   : network.layers()[input].name);
    for (const auto& [name, value] : layer.arguments) found["arguments"][layer.name][name] = to_string(value);
  }
  for (const Parameter& parameter : network.parameters()) {
    found["parameters"][parameter.name] = parameter.shape;
    found["offsets"][parameter.name] = parameter.offset;
    found["fan_in"][parameter.name] = parameter.fan_in;
  }
  for (const Parameter& buffer : network.buffers()) found["buffers"][buffer.name] = buffer.offset;
  return found;
}

void expect_part(const json& wanted, const json& found) {
  if (wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) expect_part(value, found.at(key));
  } else {
    EXPECT_EQ(found, wanted);
  }
}

template <class Error>
void expect_error(const std::function<void()>& make, const json& parts) {
  const std::string message = test::message_of<Error>(make);
  for (const json& part : parts) EXPECT_THAT(message, HasSubstr(part.get<std::string>()));
}

// A row of networks.json: layers, the shape of a sample, and what the network "has", or the parts of the
// message of its "shape_error" or "config_error".
TEST(Network, IsWhatItsRowSays) {
  const json rows = test::reference_json("networks.json");
  ASSERT_GE(rows.size(), 30u);
  for (const json& row : rows) {
    SCOPED_TRACE(row.dump());
    const auto make = [&] {
      return Network(test::network_from_json("n", row.at("layers")), row.at("input").get<Shape>());
    };
    if (row.contains("has")) {
      expect_part(row.at("has"), outcome(make()));
    } else if (row.contains("shape_error")) {
      expect_error<ShapeError>(make, row.at("shape_error"));
    } else {
      expect_error<ConfigError>(make, row.at("config_error"));
    }
  }
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
  const auto make = [&] { Network({"n", layers}, {1, 28, 28}); };
  expect_error<ShapeError>(make, {"\"wide\"", "[1048576, 4096, 4096]", "too many values"});
  layers.erase(layers.end() - 3);
  expect_error<ShapeError>(make, {"\"out\"", "[1048576, 16777216]", "too many values"});
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

TEST(InitialParameters, OfBatchNormalizationAreOnesAndZeros) {
  const Network network({"n", {test::norm("bn"), test::flatten("f")}}, {3, 2, 2});
  EXPECT_THAT(initial_parameters(network, 1), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(initial_buffers(network), ElementsAre(0, 0, 0, 1, 1, 1));
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

}  // namespace sweep::network_test
