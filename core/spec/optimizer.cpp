#include "core/spec/optimizer.h"

#include "core/base/error.h"

namespace sweep {
namespace {

ArgumentType number(std::string name, double value, double minimum, std::string help) {
  return {std::move(name), ArgumentKind::kNumber, value, minimum, kUnbounded, false, false, std::move(help)};
}

std::vector<ArgumentType> adam_arguments(double weight_decay) {
  return {{"betas", ArgumentKind::kNumberPair, std::array{0.9, 0.999}, 0, 1 - 1e-12, false, false,
           "decay of the running mean and of the running square of the gradient"},
          number("eps", 1e-8, 0, "added to the denominator"),
          number("weight_decay", weight_decay, 0,
                 weight_decay == 0 ? "L2 penalty, added to the gradient"
                                   : "share of the weights that each step takes away, times lr")};
}

double number_of(const Arguments& arguments, const char* name) {
  return std::get<double>(arguments.at(name));
}

}  // namespace

std::span<const NamedType> optimizer_types() {
  static const std::vector<NamedType> types = {
      {"sgd",
       {number("momentum", 0, 0, "share of the previous update that is kept"),
        number("dampening", 0, 0, "share of the gradient that momentum leaves out"),
        number("weight_decay", 0, 0, "L2 penalty, added to the gradient"),
        {"nesterov", ArgumentKind::kBoolean, false, 0, 0, false, false, "Nesterov momentum"}}},
      {"adam", adam_arguments(0)},
      {"adamw", adam_arguments(0.01)},
      {"rmsprop",
       {number("alpha", 0.99, 0, "decay of the running square of the gradient"),
        number("eps", 1e-8, 0, "added to the denominator"),
        number("weight_decay", 0, 0, "L2 penalty, added to the gradient"),
        number("momentum", 0, 0, "share of the previous update that is kept"),
        {"centered", ArgumentKind::kBoolean, false, 0, 0, false, false,
         "whether the gradient's variance takes the place of its square"}}},
  };
  return types;
}

OptimizerOptions resolve_optimizer(const OptimizerSpec& spec) {
  const NamedType& type = require_type(optimizer_types(), spec.type, "optimizer");
  const Arguments a = complete_arguments(type, spec.arguments, "optimizer");
  if (spec.type == "adam" || spec.type == "adamw") {
    const auto betas = std::get<std::array<double, 2>>(a.at("betas"));
    return AdamOptions{betas[0], betas[1], number_of(a, "eps"), number_of(a, "weight_decay"),
                       spec.type == "adamw"};
  }
  if (spec.type == "rmsprop") {
    return RmspropOptions{number_of(a, "alpha"), number_of(a, "eps"), number_of(a, "weight_decay"),
                          number_of(a, "momentum"), std::get<bool>(a.at("centered"))};
  }
  const SgdOptions sgd{number_of(a, "momentum"), number_of(a, "dampening"), number_of(a, "weight_decay"),
                       std::get<bool>(a.at("nesterov"))};
  if (sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0)) {
    throw ConfigError("optimizer: nesterov needs momentum > 0 and dampening 0");
  }
  return sgd;
}

std::vector<std::string> state_names(const OptimizerOptions& options) {
  if (const auto* sgd = std::get_if<SgdOptions>(&options)) {
    return sgd->momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }
  if (const auto* rmsprop = std::get_if<RmspropOptions>(&options)) {
    std::vector<std::string> names = {"square_avg"};
    if (rmsprop->centered) names.emplace_back("grad_avg");
    if (rmsprop->momentum != 0) names.emplace_back("momentum_buffer");
    return names;
  }
  return {"exp_avg", "exp_avg_sq"};
}

OptimizerOptions with_momentum(OptimizerOptions optimizer, double momentum) {
  if (auto* adam = std::get_if<AdamOptions>(&optimizer)) {
    adam->beta1 = momentum;
  } else if (auto* rmsprop = std::get_if<RmspropOptions>(&optimizer)) {
    rmsprop->momentum = momentum;
  } else {
    std::get<SgdOptions>(optimizer).momentum = momentum;
  }
  return optimizer;
}

}  // namespace sweep
