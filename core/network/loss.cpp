#include "core/network/loss.h"

#include <algorithm>

#include "core/base/error.h"

namespace sweep {

std::span<const NamedType> loss_types() {
  static const std::vector<NamedType> types = {
      {"cross_entropy",
       {number_argument("label_smoothing", 0, 0, 1, "share of the target that is spread over all classes"),
        {.name = "class_weights",
         .kind = ArgumentKind::kNumberList,
         .maximum = 1e6,
         .optional = true,
         .help = "how much the samples of each class count, one number per class"}}},
      {"mse", {}},
      {"l1", {}},
      {"smooth_l1",
       {number_argument("beta", 1, 0, kUnbounded,
                        "errors smaller than this count as squares, larger ones as they are")}},
      {"bce_with_logits", {}},
  };
  return types;
}

LossOptions make_loss(std::string_view type, const Arguments& given) {
  const NamedType& found = require_type(loss_types(), type, "loss");
  LossOptions loss{.kind = static_cast<LossOptions::Kind>(&found - loss_types().data())};
  for (const auto& [name, value] : complete_arguments(found, given, "loss")) {
    if (name == "label_smoothing") loss.label_smoothing = std::get<double>(value);
    if (name == "beta") loss.beta = std::get<double>(value);
    if (name == "class_weights") {
      for (const double weight : std::get<std::vector<double>>(value))
        loss.class_weights.push_back(static_cast<float>(weight));
      if (std::ranges::max(loss.class_weights) == 0)
        throw ConfigError("loss: got class_weights that are all 0, want one > 0");
    }
  }
  return loss;
}

const NamedType& type_of(const LossOptions& loss) {
  return loss_types()[static_cast<std::size_t>(loss.kind)];
}

Arguments arguments_of(const LossOptions& loss) {
  Arguments arguments = {{"label_smoothing", loss.label_smoothing}, {"beta", loss.beta}};
  const std::vector<float>& weights = loss.class_weights;
  if (!weights.empty()) arguments["class_weights"] = std::vector<double>(weights.begin(), weights.end());
  std::erase_if(arguments, [&](const auto& value) { return !find_argument(type_of(loss), value.first); });
  return arguments;
}

bool accepts_regression(LossOptions::Kind kind) { return kind != LossOptions::Kind::kCrossEntropy; }

std::size_t least_outputs(LossOptions::Kind kind, std::size_t classes) {
  return kind == LossOptions::Kind::kBceWithLogits && classes == 2 ? 1 : classes;
}

}  // namespace sweep
