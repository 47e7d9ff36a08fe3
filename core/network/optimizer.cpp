#include "core/network/optimizer.h"

#include "core/base/error.h"

namespace sweep {
namespace {

ArgumentType number(std::string name, double value, std::string help) {
  return number_argument(std::move(name), value, 0, kUnbounded, std::move(help));
}

std::vector<ArgumentType> adam_arguments(double weight_decay) {
  return {{"betas", ArgumentKind::kNumberPair, std::array{0.9, 0.999}, 0, 1 - 1e-12, false, false,
           "decay of the running mean and of the running square of the gradient"},
          number("eps", 1e-8, "added to the denominator"),
          number("weight_decay", weight_decay,
                 weight_decay == 0 ? "L2 penalty, added to the gradient"
                                   : "share of the weights that each step takes away, times lr")};
}

OptimizerOptions sgd(const Arguments& a) {
  const SgdOptions options{value_of<double>(a, "momentum"), value_of<double>(a, "dampening"),
                           value_of<double>(a, "weight_decay"), value_of<bool>(a, "nesterov")};
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw ConfigError("optimizer: nesterov needs momentum > 0 and dampening 0");
  }
  return options;
}

OptimizerOptions adam(const Arguments& a, bool decoupled) {
  const auto betas = value_of<std::array<double, 2>>(a, "betas");
  return AdamOptions{betas[0], betas[1], value_of<double>(a, "eps"), value_of<double>(a, "weight_decay"),
                     decoupled};
}

OptimizerOptions rmsprop(const Arguments& a) {
  return RmspropOptions{value_of<double>(a, "alpha"), value_of<double>(a, "eps"),
                        value_of<double>(a, "weight_decay"), value_of<double>(a, "momentum"),
                        value_of<bool>(a, "centered")};
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

using Numbers = std::vector<std::pair<std::string, double>>;

Numbers listed(const SgdOptions& sgd) {
  return {{"momentum", sgd.momentum}, {"dampening", sgd.dampening}, {"weight_decay", sgd.weight_decay}};
}
Numbers listed(const AdamOptions& adam) {
  return {
      {"beta1", adam.beta1}, {"beta2", adam.beta2}, {"eps", adam.eps}, {"weight_decay", adam.weight_decay}};
}
Numbers listed(const RmspropOptions& rmsprop) {
  return {{"alpha", rmsprop.alpha},
          {"eps", rmsprop.eps},
          {"weight_decay", rmsprop.weight_decay},
          {"momentum", rmsprop.momentum}};
}

}  // namespace

std::span<const NamedType> optimizer_types() {
  static const std::vector<NamedType> types = {
      {"sgd",
       {number("momentum", 0, "share of the previous update that is kept"),
        number("dampening", 0, "share of the gradient that momentum leaves out"),
        number("weight_decay", 0, "L2 penalty, added to the gradient"),
        flag_argument("nesterov", false, "Nesterov momentum")}},
      {"adam", adam_arguments(0)},
      {"adamw", adam_arguments(0.01)},
      {"rmsprop",
       {number("alpha", 0.99, "decay of the running square of the gradient"),
        number("eps", 1e-8, "added to the denominator"),
        number("weight_decay", 0, "L2 penalty, added to the gradient"),
        number("momentum", 0, "share of the previous update that is kept"),
        flag_argument("centered", false, "whether the gradient's variance takes the place of its square")}},
  };
  return types;
}

OptimizerOptions make_optimizer(std::string_view type, const Arguments& given) {
  const Arguments a =
      complete_arguments(require_type(optimizer_types(), type, "optimizer"), given, "optimizer");
  if (type == "adam" || type == "adamw") return adam(a, type == "adamw");
  return type == "rmsprop" ? rmsprop(a) : sgd(a);
}

std::vector<std::string> state_names(const OptimizerOptions& options) {
  return std::visit([](const auto& optimizer) { return names_of(optimizer); }, options);
}

bool has_momentum(const OptimizerOptions& options) {
  return std::visit([](const auto& optimizer) { return uses_momentum(optimizer); }, options);
}

std::vector<std::pair<std::string, double>> numbers_of(const OptimizerOptions& options) {
  return std::visit([](const auto& optimizer) { return listed(optimizer); }, options);
}

OptimizerOptions with_momentum(OptimizerOptions options, double momentum) {
  std::visit([&](auto& optimizer) { set_momentum(optimizer, momentum); }, options);
  return options;
}

}  // namespace sweep
