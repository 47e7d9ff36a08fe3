// The table of layer types: PyTorch's names, arguments and defaults. core/kernels/README.md lists what else
// a new type needs.
#include <array>

#include "core/network/layer_spec.h"
#include "core/spec/activation.h"

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

// In the order that messages and the schema show: the activations follow the layers with weights.
std::vector<NamedType> make_layer_types() {
  std::vector<NamedType> types = {
      {"conv2d",
       {width("out_channels", "channels of the output"),
        pair("kernel_size", std::nullopt, 1, "height and width of the kernel"),
        pair("stride", 1, 1, "step between outputs"),
        pair("padding", 0, 0, "rows and columns of zeros around the input"),
        pair("dilation", 1, 1, "step between the taps of the kernel"),
        {"groups", ArgumentKind::kInteger, std::int64_t{1}, 1, 1 << 20, false, false,
         "groups of channels that do not see each other; divides the channels of input and output"},
        bias()}},
      {"linear", {width("out_features", "features of the output"), bias()}},
  };
  for (const ActivationType& activation : activation_types()) types.push_back(activation.type);
  const std::vector<NamedType> others = {
      {"max_pool2d",
       {pair("kernel_size", std::nullopt, 1, "height and width of the window"),
        pair("stride", std::nullopt, 1, "step between windows; the kernel size if left out", true),
        pair("padding", 0, 0,
             "rows and columns around the input that no maximum comes from, at most half the kernel")}},
      {"avg_pool2d",
       {pair("kernel_size", std::nullopt, 1, "height and width of the window"),
        pair("stride", std::nullopt, 1, "step between windows; the kernel size if left out", true),
        pair("padding", 0, 0, "rows and columns of zeros around the input, at most half the kernel"),
        {"count_include_pad", ArgumentKind::kBoolean, true, 0, 0, false, false,
         "whether the padding counts in the average"}}},
      {"adaptive_avg_pool2d", {pair("output_size", std::nullopt, 1, "height and width of the output")}},
      {"batch_norm2d",
       {number("eps", 1e-5, 0, 1, "added to the variance"),
        number("momentum", 0.1, 0, 1, "weight of a new batch in the running mean and variance"),
        {"affine", ArgumentKind::kBoolean, true, 0, 0, false, false,
         "whether a factor and a summand are learned for each channel"}}},
      {"dropout", {number("p", 0.5, 0, 1, "probability that an element is zeroed")}},
      {"flatten", {}},
      {"sequential", {}},
      {"residual", {}},
  };
  types.insert(types.end(), others.begin(), others.end());
  return types;
}

}  // namespace

std::span<const NamedType> layer_types() {
  static const std::vector<NamedType> types = make_layer_types();
  return types;
}

bool has_inner_layers(std::string_view type) { return type == "sequential" || type == "residual"; }

}  // namespace sweep
