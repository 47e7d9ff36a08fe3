// Everything about each type of layer that does not depend on an engine.
#include <array>

#include "core/base/error.h"
#include "core/network/network.h"

namespace sweep {
namespace {

ArgumentType pair(std::string name, std::optional<std::int64_t> value, std::int64_t minimum, std::string help,
                  bool optional = false) {
  std::optional<ArgumentValue> default_value;
  if (value) default_value = std::array<std::int64_t, 2>{*value, *value};
  return {std::move(name),
          ArgumentKind::kIntegerPair,
          default_value,
          static_cast<double>(minimum),
          128,
          optional,
          false,
          std::move(help)};
}

ArgumentType width(std::string name, std::string help) {
  return {std::move(name), ArgumentKind::kInteger, std::nullopt, 1, 1 << 20, false, false, std::move(help)};
}

ArgumentType bias() { return flag_argument("bias", true, "whether a learned bias is added"); }

layers::HeightWidth pair_of(const Arguments& arguments, std::string_view name) {
  return value_of<layers::HeightWidth>(arguments, name);
}
layers::Window window_of(const Arguments& a) {
  return {pair_of(a, "kernel_size"), pair_of(a, "stride"), pair_of(a, "padding")};
}

template <Activation kFunction>
LayerKind activated(const Arguments& arguments) {
  const bool has_coefficient = !arguments.empty();
  return layers::Activated{
      kFunction, has_coefficient ? static_cast<float>(std::get<double>(arguments.begin()->second)) : 0};
}

struct LayerType {
  std::string_view torch_class;
  NamedType type;
  LayerKind (*make)(const Arguments& complete);
};

// In the order that messages and the schema show: the activations follow the layers with weights.
const std::vector<LayerType>& layer_rows() {
  static const std::vector<LayerType> rows = {
      {"Conv2d",
       {"conv2d",
        {width("out_channels", "channels of the output"),
         pair("kernel_size", std::nullopt, 1, "height and width of the kernel"),
         pair("stride", 1, 1, "step between outputs"),
         pair("padding", 0, 0, "rows and columns of zeros around the input"),
         pair("dilation", 1, 1, "step between the taps of the kernel"),
         {"groups", ArgumentKind::kInteger, std::int64_t{1}, 1, 1 << 20, false, false,
          "groups of channels that do not see each other; divides the channels of input and output"},
         bias()}},
       [](const Arguments& a) -> LayerKind {
         return layers::Conv2d{window_of(a), pair_of(a, "dilation"),
                               value_of<std::int64_t>(a, "out_channels"), value_of<std::int64_t>(a, "groups"),
                               value_of<bool>(a, "bias")};
       }},
      {"Linear",
       {"linear", {width("out_features", "features of the output"), bias()}},
       [](const Arguments& a) -> LayerKind {
         return layers::Linear{value_of<std::int64_t>(a, "out_features"), value_of<bool>(a, "bias")};
       }},
      {"ReLU", {"relu", {}}, activated<Activation::kRelu>},
      {"LeakyReLU",
       {"leaky_relu",
        {number_argument("negative_slope", 0.01, -kUnbounded, kUnbounded, "factor of values below 0")}},
       activated<Activation::kLeakyRelu>},
      {"Tanh", {"tanh", {}}, activated<Activation::kTanh>},
      {"Sigmoid", {"sigmoid", {}}, activated<Activation::kSigmoid>},
      {"GELU", {"gelu", {}}, activated<Activation::kGelu>},
      {"SiLU", {"silu", {}}, activated<Activation::kSilu>},
      {"MaxPool2d",
       {"max_pool2d",
        {pair("kernel_size", std::nullopt, 1, "height and width of the window"),
         pair("stride", std::nullopt, 1, "step between windows; the kernel size if left out", true),
         pair("padding", 0, 0,
              "rows and columns around the input that no maximum comes from, at most half the kernel")}},
       [](const Arguments& a) -> LayerKind { return layers::MaxPool2d{window_of(a)}; }},
      {"AvgPool2d",
       {"avg_pool2d",
        {pair("kernel_size", std::nullopt, 1, "height and width of the window"),
         pair("stride", std::nullopt, 1, "step between windows; the kernel size if left out", true),
         pair("padding", 0, 0, "rows and columns of zeros around the input, at most half the kernel"),
         flag_argument("count_include_pad", true, "whether the padding counts in the average")}},
       [](const Arguments& a) -> LayerKind {
         return layers::AvgPool2d{window_of(a), value_of<bool>(a, "count_include_pad")};
       }},
      {"AdaptiveAvgPool2d",
       {"adaptive_avg_pool2d", {pair("output_size", std::nullopt, 1, "height and width of the output")}},
       [](const Arguments& a) -> LayerKind { return layers::AdaptiveAvgPool2d{pair_of(a, "output_size")}; }},
      {"BatchNorm2d",
       {"batch_norm2d",
        {number_argument("eps", 1e-5, 0, 1, "added to the variance"),
         number_argument("momentum", 0.1, 0, 1, "weight of a new batch in the running mean and variance"),
         flag_argument("affine", true, "whether a factor and a summand are learned for each channel")}},
       [](const Arguments& a) -> LayerKind {
         return layers::BatchNorm2d{value_of<double>(a, "eps"), value_of<double>(a, "momentum"),
                                    value_of<bool>(a, "affine")};
       }},
      {"Dropout",
       {"dropout", {number_argument("p", 0.5, 0, 1, "probability that an element is zeroed")}},
       [](const Arguments& a) -> LayerKind { return layers::Dropout{value_of<double>(a, "p")}; }},
      {"Flatten", {"flatten", {}}, [](const Arguments&) -> LayerKind { return layers::Flatten{}; }},
      {"sequential", {"sequential", {}}, nullptr},
      {"Add", {"residual", {}}, [](const Arguments&) -> LayerKind { return layers::Sum{}; }},
  };
  return rows;
}

[[noreturn]] void throw_shape(const Layer& layer, const std::string& problem) {
  throw ShapeError("layer \"" + layer.name + "\" (" + layer.type + "): " + problem);
}

// Products of extents that no machine holds, such as 2^64, must not wrap around and pass later checks.
void check_count(const Layer& layer, const Shape& shape) {
  constexpr double kMaxCount = 1LL << 40;
  double count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
  if (count > kMaxCount) throw_shape(layer, "an array of shape " + to_string(shape) + " has too many values");
}

void need_image(const Layer& layer) {
  if (layer.input.size() == 3) return;
  throw_shape(layer, "needs an input of shape [channels, height, width], but gets " + to_string(layer.input));
}

// Output shape of a sliding window, for convolution and pooling: PyTorch's formula with ceil_mode false.
Shape window_output(const Layer& layer, std::int64_t channels, const layers::Window& window,
                    const layers::HeightWidth& dilation) {
  Shape output{channels, 0, 0};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t room =
        layer.input[d + 1] + 2 * window.padding[d] - dilation[d] * (window.kernel_size[d] - 1) - 1;
    if (room < 0) {
      const auto text = [](const layers::HeightWidth& pair) { return to_string(ArgumentValue(pair)); };
      throw_shape(layer,
                  "kernel_size " + text(window.kernel_size) +
                      (dilation == layers::HeightWidth{1, 1} ? "" : " with dilation " + text(dilation)) +
                      " is larger than its input " + to_string(layer.input) + " with padding " +
                      text(window.padding));
    }
    output[d + 1] = room / window.stride[d] + 1;
  }
  return output;
}

// The arrays of a network, to which each layer adds its own.
struct NetworkArrays {
  std::vector<Parameter>&parameters, &buffers;
};

void add_array(std::vector<Parameter>& arrays, std::vector<std::size_t>& indices, std::string name,
               Shape shape, std::int64_t fan_in, float initial) {
  const std::size_t offset = arrays.empty() ? 0 : arrays.back().offset + arrays.back().count;
  const std::size_t count = element_count(shape);
  indices.push_back(arrays.size());
  arrays.push_back({std::move(name), std::move(shape), offset, count, fan_in, initial});
}

void add_weights(Layer& layer, NetworkArrays& arrays, const Shape& weight, bool bias) {
  const auto fan_in = static_cast<std::int64_t>(element_count(weight)) / weight[0];
  add_array(arrays.parameters, layer.parameters, layer.name + ".weight", weight, fan_in, 0);
  if (bias) add_array(arrays.parameters, layer.parameters, layer.name + ".bias", {weight[0]}, fan_in, 0);
}

// Returns the output's shape and adds the arrays of a layer, whose name, type and input are known.
Shape describe(const layers::Conv2d& conv, Layer& layer, NetworkArrays& arrays) {
  need_image(layer);
  if (layer.input[0] % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
    throw_shape(layer, "groups " + std::to_string(conv.groups) + " does not divide the channels of input " +
                           to_string(layer.input) + " and output, " + std::to_string(conv.out_channels));
  }
  Shape output = window_output(layer, conv.out_channels, conv, conv.dilation);
  add_weights(layer, arrays,
              {conv.out_channels, layer.input[0] / conv.groups, conv.kernel_size[0], conv.kernel_size[1]},
              conv.bias);
  return output;
}
Shape describe(const layers::Linear& linear, Layer& layer, NetworkArrays& arrays) {
  if (layer.input.size() != 1) {
    throw_shape(layer, "needs an input of shape [features], but gets " + to_string(layer.input) +
                           "; put a flatten layer in front of it");
  }
  add_weights(layer, arrays, {linear.out_features, layer.input[0]}, linear.bias);
  return {linear.out_features};
}
// Pooling.
Shape describe(const layers::Window& window, Layer& layer, NetworkArrays&) {
  need_image(layer);
  for (std::size_t d = 0; d < 2; ++d) {
    if (2 * window.padding[d] > window.kernel_size[d])
      throw_shape(layer, "padding must be at most half of kernel_size");
  }
  return window_output(layer, layer.input[0], window, {1, 1});
}
Shape describe(const layers::AdaptiveAvgPool2d& pool, Layer& layer, NetworkArrays&) {
  need_image(layer);
  return {layer.input[0], pool.output_size[0], pool.output_size[1]};
}
Shape describe(const layers::BatchNorm2d& norm, Layer& layer, NetworkArrays& arrays) {
  need_image(layer);
  const Shape channels = {layer.input[0]};
  if (norm.affine) {
    add_array(arrays.parameters, layer.parameters, layer.name + ".weight", channels, 0, 1);
    add_array(arrays.parameters, layer.parameters, layer.name + ".bias", channels, 0, 0);
  }
  add_array(arrays.buffers, layer.buffers, layer.name + ".running_mean", channels, 0, 0);
  add_array(arrays.buffers, layer.buffers, layer.name + ".running_var", channels, 0, 1);
  return layer.input;
}
Shape describe(const layers::Flatten&, Layer& layer, NetworkArrays&) {
  return {static_cast<std::int64_t>(element_count(layer.input))};
}
Shape describe(const layers::Activated&, Layer& layer, NetworkArrays&) { return layer.input; }
Shape describe(const layers::Dropout&, Layer& layer, NetworkArrays&) { return layer.input; }
Shape describe(const layers::Sum&, Layer& layer, NetworkArrays&) { return layer.input; }

const LayerType& row_of(const NamedType& type) {
  return layer_rows()[static_cast<std::size_t>(&type - layer_types().data())];
}

}  // namespace

std::span<const NamedType> layer_types() {
  static const std::vector<NamedType> types = [] {
    std::vector<NamedType> result;
    for (const LayerType& row : layer_rows()) result.push_back(row.type);
    return result;
  }();
  return types;
}

bool has_inner_layers(std::string_view type) { return type == "sequential" || type == "residual"; }

std::string_view torch_class(std::string_view type) {
  return row_of(*find_type(layer_types(), type)).torch_class;
}

Layer Network::make_layer(const LayerSpec& spec, const std::string& name, const Shape& input) {
  const std::string label = "layer \"" + name + "\"";  // for messages
  const NamedType& type = require_type(layer_types(), spec.type, label);
  Layer layer{name, spec.type, complete_arguments(type, spec.arguments, label), {}, input, {}, {}, {}, {}};
  if (find_argument(type, "stride") != nullptr)
    layer.arguments.try_emplace("stride", layer.arguments.at("kernel_size"));
  layer.kind = row_of(type).make(layer.arguments);
  NetworkArrays arrays{parameters_, buffers_};
  layer.output = std::visit([&](const auto& kind) { return describe(kind, layer, arrays); }, layer.kind);
  check_count(layer, layer.output);
  for (const std::size_t i : layer.parameters) check_count(layer, parameters_[i].shape);
  return layer;
}

}  // namespace sweep
