// The table of layer types: PyTorch's names, arguments and defaults.
#include <array>

#include "core/network/spec.h"

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

ArgumentType bias() {
  return {"bias", ArgumentKind::kBoolean, true, 0, 0, false, false, "whether a learned bias is added"};
}

}  // namespace

std::span<const NamedType> layer_types() {
  static const std::vector<NamedType> types = {
      {"conv2d",
       {width("out_channels", "channels of the output"),
        pair("kernel_size", std::nullopt, 1, "height and width of the kernel"),
        pair("stride", 1, 1, "step between outputs"),
        pair("padding", 0, 0, "rows and columns of zeros around the input"), bias()}},
      {"linear", {width("out_features", "features of the output"), bias()}},
      {"relu", {}},
      {"max_pool2d",
       {pair("kernel_size", std::nullopt, 1, "height and width of the window"),
        pair("stride", std::nullopt, 1, "step between windows; the kernel size if left out", true),
        pair("padding", 0, 0,
             "rows and columns around the input that no maximum comes from, at most half the kernel")}},
      {"flatten", {}},
  };
  return types;
}

}  // namespace sweep
