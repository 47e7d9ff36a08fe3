#include "core/spec/activation.h"

#include <algorithm>

namespace sweep {

std::span<const ActivationType> activation_types() {
  static const std::vector<ActivationType> types = {
      {Activation::kRelu, "ReLU", {"relu", {}}},
      {Activation::kLeakyRelu,
       "LeakyReLU",
       {"leaky_relu",
        {{"negative_slope", ArgumentKind::kNumber, 0.01, -kUnbounded, kUnbounded, false, false,
          "factor of values below 0"}}}},
      {Activation::kTanh, "Tanh", {"tanh", {}}},
      {Activation::kSigmoid, "Sigmoid", {"sigmoid", {}}},
      {Activation::kGelu, "GELU", {"gelu", {}}},
  };
  return types;
}

const ActivationType* find_activation(std::string_view layer_type) {
  const auto types = activation_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const ActivationType& activation) {
    return activation.type.name == layer_type;
  });
  return found == types.end() ? nullptr : &*found;
}

std::optional<Activation> activation_of(std::string_view layer_type) {
  const ActivationType* found = find_activation(layer_type);
  return found == nullptr ? std::nullopt : std::optional(found->activation);
}

float activation_coefficient(std::string_view layer_type, const Arguments& arguments) {
  const ActivationType* found = find_activation(layer_type);
  if (found == nullptr || found->type.arguments.empty()) return 0;
  return static_cast<float>(std::get<double>(arguments.at(found->type.arguments.front().name)));
}

}  // namespace sweep
