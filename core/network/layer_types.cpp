// The table of layer types: PyTorch's names, arguments and defaults. core/kernels/README.md lists what else
// a new type needs.
#include <array>

#include "core/network/layer_kinds.h"
#include "core/network/layer_spec.h"

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

ArgumentType number(std::string name, double value, double minimum, double maximum, std::string help) {
  return {std::move(name), ArgumentKind::kNumber, value, minimum, maximum, false, false, std::move(help)};
}

ArgumentType bias() {
  return {"bias", ArgumentKind::kBoolean, true, 0, 0, false, false, "whether a learned bias is added"};
}

layers::HeightWidth pair_of(const Arguments& arguments, std::string_view name) {
  return std::get<layers::HeightWidth>(arguments.find(name)->second);
}
bool flag_of(const Arguments& arguments, std::string_view name) {
  return std::get<bool>(arguments.find(name)->second);
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
const std::vector<LayerType>& rows() {
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
         return layers::Conv2d{window_of(a), pair_of(a, "dilation"), integer_of(a, "out_channels"),
                               integer_of(a, "groups"), flag_of(a, "bias")};
       }},
      {"Linear",
       {"linear", {width("out_features", "features of the output"), bias()}},
       [](const Arguments& a) -> LayerKind {
         return layers::Linear{integer_of(a, "out_features"), flag_of(a, "bias")};
       }},
      {"ReLU", {"relu", {}}, activated<Activation::kRelu>},
      {"LeakyReLU",
       {"leaky_relu", {number("negative_slope", 0.01, -kUnbounded, kUnbounded, "factor of values below 0")}},
       activated<Activation::kLeakyRelu>},
      {"Tanh", {"tanh", {}}, activated<Activation::kTanh>},
      {"Sigmoid", {"sigmoid", {}}, activated<Activation::kSigmoid>},
      {"GELU", {"gelu", {}}, activated<Activation::kGelu>},
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
         {"count_include_pad", ArgumentKind::kBoolean, true, 0, 0, false, false,
          "whether the padding counts in the average"}}},
       [](const Arguments& a) -> LayerKind {
         return layers::AvgPool2d{window_of(a), flag_of(a, "count_include_pad")};
       }},
      {"AdaptiveAvgPool2d",
       {"adaptive_avg_pool2d", {pair("output_size", std::nullopt, 1, "height and width of the output")}},
       [](const Arguments& a) -> LayerKind { return layers::AdaptiveAvgPool2d{pair_of(a, "output_size")}; }},
      {"BatchNorm2d",
       {"batch_norm2d",
        {number("eps", 1e-5, 0, 1, "added to the variance"),
         number("momentum", 0.1, 0, 1, "weight of a new batch in the running mean and variance"),
         {"affine", ArgumentKind::kBoolean, true, 0, 0, false, false,
          "whether a factor and a summand are learned for each channel"}}},
       [](const Arguments& a) -> LayerKind {
         return layers::BatchNorm2d{number_of(a, "eps"), number_of(a, "momentum"), flag_of(a, "affine")};
       }},
      {"Dropout",
       {"dropout", {number("p", 0.5, 0, 1, "probability that an element is zeroed")}},
       [](const Arguments& a) -> LayerKind { return layers::Dropout{number_of(a, "p")}; }},
      {"Flatten", {"flatten", {}}, [](const Arguments&) -> LayerKind { return layers::Flatten{}; }},
      {"sequential", {"sequential", {}}, nullptr},
      {"Add", {"residual", {}}, [](const Arguments&) -> LayerKind { return layers::Sum{}; }},
  };
  return rows;
}

}  // namespace

std::span<const NamedType> layer_types() {
  static const std::vector<NamedType> types = [] {
    std::vector<NamedType> result;
    for (const LayerType& row : rows()) result.push_back(row.type);
    return result;
  }();
  return types;
}

bool has_inner_layers(std::string_view type) { return type == "sequential" || type == "residual"; }

LayerKind layer_kind(const NamedType& type, Arguments& arguments) {
  if (find_argument(type, "stride") != nullptr) arguments.try_emplace("stride", arguments.at("kernel_size"));
  return rows()[static_cast<std::size_t>(&type - layer_types().data())].make(arguments);
}

std::string_view torch_class(std::string_view type) {
  const NamedType* found = find_type(layer_types(), type);
  return rows()[static_cast<std::size_t>(found - layer_types().data())].torch_class;
}

}  // namespace sweep
