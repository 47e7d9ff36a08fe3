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

OptimizerOptions resolve_sgd(const Arguments& a) {
  const SgdOptions sgd{number_of(a, "momentum"), number_of(a, "dampening"), number_of(a, "weight_decay"),
                       std::get<bool>(a.at("nesterov"))};
  if (sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0)) {
    throw ConfigError("optimizer: nesterov needs momentum > 0 and dampening 0");
  }
  return sgd;
}

AdamOptions resolve_betas(const Arguments& a, bool decoupled) {
  const auto betas = std::get<std::array<double, 2>>(a.at("betas"));
  return {betas[0], betas[1], number_of(a, "eps"), number_of(a, "weight_decay"), decoupled};
}

OptimizerOptions resolve_adam(const Arguments& a) { return resolve_betas(a, false); }

OptimizerOptions resolve_adamw(const Arguments& a) { return resolve_betas(a, true); }

OptimizerOptions resolve_rmsprop(const Arguments& a) {
  return RmspropOptions{number_of(a, "alpha"), number_of(a, "eps"), number_of(a, "weight_decay"),
                        number_of(a, "momentum"), std::get<bool>(a.at("centered"))};
}

struct OptimizerType {
  NamedType type;
  OptimizerOptions (*resolve)(const Arguments& complete);
};

// In the order that messages and the schema show.
const std::vector<OptimizerType>& rows() {
  static const std::vector<OptimizerType> rows = {
      {{"sgd",
        {number("momentum", 0, 0, "share of the previous update that is kept"),
         number("dampening", 0, 0, "share of the gradient that momentum leaves out"),
         number("weight_decay", 0, 0, "L2 penalty, added to the gradient"),
         {"nesterov", ArgumentKind::kBoolean, false, 0, 0, false, false, "Nesterov momentum"}}},
       resolve_sgd},
      {{"adam", adam_arguments(0)}, resolve_adam},
      {{"adamw", adam_arguments(0.01)}, resolve_adamw},
      {{"rmsprop",
        {number("alpha", 0.99, 0, "decay of the running square of the gradient"),
         number("eps", 1e-8, 0, "added to the denominator"),
         number("weight_decay", 0, 0, "L2 penalty, added to the gradient"),
         number("momentum", 0, 0, "share of the previous update that is kept"),
         {"centered", ArgumentKind::kBoolean, false, 0, 0, false, false,
          "whether the gradient's variance takes the place of its square"}}},
       resolve_rmsprop},
  };
  return rows;
}

std::vector<std::string> names_of(const SgdOptions& sgd) {
  return sgd.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

std::vector<std::string> names_of(const AdamOptions&) { return {"exp_avg", "exp_avg_sq"}; }

std::vector<std::string> names_of(const RmspropOptions& rmsprop) {
  std::vector<std::string> names = {"square_avg"};
  if (rmsprop.centered) names.emplace_back("grad_avg");
  if (rmsprop.momentum != 0) names.emplace_back("momentum_buffer");
  return names;
}

bool uses_momentum(const SgdOptions& sgd) { return sgd.momentum != 0; }
bool uses_momentum(const AdamOptions&) { return true; }
bool uses_momentum(const RmspropOptions& rmsprop) { return rmsprop.momentum != 0; }

void set_momentum(SgdOptions& sgd, double momentum) { sgd.momentum = momentum; }
void set_momentum(AdamOptions& adam, double momentum) { adam.beta1 = momentum; }
void set_momentum(RmspropOptions& rmsprop, double momentum) { rmsprop.momentum = momentum; }

}  // namespace

std::span<const NamedType> optimizer_types() {
  static const std::vector<NamedType> types = [] {
    std::vector<NamedType> result;
    for (const OptimizerType& row : rows()) result.push_back(row.type);
    return result;
  }();
  return types;
}

OptimizerOptions resolve_optimizer(const OptimizerSpec& spec) {
  const NamedType& type = require_type(optimizer_types(), spec.type, "optimizer");
  const auto row = static_cast<std::size_t>(&type - optimizer_types().data());
  return rows()[row].resolve(complete_arguments(type, spec.arguments, "optimizer"));
}

std::vector<std::string> state_names(const OptimizerOptions& options) {
  return std::visit([](const auto& optimizer) { return names_of(optimizer); }, options);
}

bool has_momentum(const OptimizerOptions& options) {
  return std::visit([](const auto& optimizer) { return uses_momentum(optimizer); }, options);
}

OptimizerOptions with_momentum(OptimizerOptions options, double momentum) {
  std::visit([&](auto& optimizer) { set_momentum(optimizer, momentum); }, options);
  return options;
}

}  // namespace sweep
