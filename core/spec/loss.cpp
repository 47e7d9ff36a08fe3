#include "core/spec/loss.h"

namespace sweep {

std::span<const NamedType> loss_types() {
  static const std::vector<NamedType> types = {
      {"cross_entropy",
       {{"label_smoothing", ArgumentKind::kNumber, 0.0, 0, 1, false, false,
         "share of the target that is spread over all classes"}}},
      {"mse", {}},
  };
  return types;
}

LossOptions resolve_loss(const LossSpec& spec) {
  const NamedType& type = require_type(loss_types(), spec.type, "loss");
  const Arguments arguments = complete_arguments(type, spec.arguments, "loss");
  if (spec.type == "mse") return {LossOptions::Kind::kMse, 0};
  return {LossOptions::Kind::kCrossEntropy, std::get<double>(arguments.at("label_smoothing"))};
}

}  // namespace sweep
