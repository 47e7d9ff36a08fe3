#include "core/spec/loss.h"

namespace sweep {

// In the order of LossOptions::Kind.
std::span<const NamedType> loss_types() {
  static const std::vector<NamedType> types = {
      {"cross_entropy",
       {{"label_smoothing", ArgumentKind::kNumber, 0.0, 0, 1, false, false,
         "share of the target that is spread over all classes"},
        {.name = "class_weights",
         .kind = ArgumentKind::kNumberList,
         .maximum = 1e6,
         .optional = true,
         .exclusive = true,
         .help = "how much the samples of each class count, one number per class"}}},
      {"mse", {}},
      {"l1", {}},
      {"smooth_l1",
       {{"beta", ArgumentKind::kNumber, 1.0, 0, kUnbounded, false, false,
         "errors smaller than this count as squares, larger ones as they are"}}},
      {"bce_with_logits", {}},
  };
  return types;
}

LossOptions resolve_loss(const LossSpec& spec) {
  const NamedType& type = require_type(loss_types(), spec.type, "loss");
  const Arguments arguments = complete_arguments(type, spec.arguments, "loss");
  LossOptions loss{.kind = static_cast<LossOptions::Kind>(&type - loss_types().data())};
  for (const auto& [name, value] : arguments) {
    if (name == "label_smoothing") loss.label_smoothing = std::get<double>(value);
    if (name == "beta") loss.beta = std::get<double>(value);
    if (name == "class_weights") {
      for (const double weight : std::get<std::vector<double>>(value))
        loss.class_weights.push_back(static_cast<float>(weight));
    }
  }
  return loss;
}

bool accepts_regression(LossOptions::Kind kind) {
  switch (kind) {
    case LossOptions::Kind::kCrossEntropy:
      return false;
    case LossOptions::Kind::kMse:
    case LossOptions::Kind::kL1:
    case LossOptions::Kind::kSmoothL1:
    case LossOptions::Kind::kBceWithLogits:
      break;
  }
  return true;
}

std::size_t least_outputs(LossOptions::Kind kind, std::size_t classes) {
  return kind == LossOptions::Kind::kBceWithLogits && classes == 2 ? 1 : classes;
}

}  // namespace sweep
