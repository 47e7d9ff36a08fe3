// Optimizers by PyTorch's names, arguments and defaults.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "core/spec/arguments.h"

namespace sweep {

/// An optimizer as the sweep file describes it. The learning rate is an argument of its own, set per step.
struct OptimizerSpec {
  std::string type = "sgd";  // a name from optimizer_types()
  Arguments arguments;       // what was given, without defaults
};

/// Every optimizer that the engines know, with its arguments (without lr).
std::span<const NamedType> optimizer_types();

/// torch.optim.SGD: g += weight_decay·w; b = momentum·b + (1 − dampening)·g (b = g in the first step);
/// g = nesterov ? g + momentum·b : b; w −= lr·g.
struct SgdOptions {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam with bias correction: weight decay is added to the gradient (L2). With `decoupled`
/// torch.optim.AdamW: the weights shrink by lr · weight_decay in every step instead.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
};

/// torch.optim.RMSprop: s = alpha·s + (1 − alpha)·g²; with `centered` s − mean(g)² takes the place of s; with
/// momentum b = momentum·b + g / (sqrt(s) + eps), w −= lr·b.
struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions>;

/// Fills in defaults and checks. Throws ConfigError for an unknown type or argument.
OptimizerOptions resolve_optimizer(const OptimizerSpec& spec);

/// PyTorch's names of the arrays that the optimizer keeps, each as long as the parameters.
std::vector<std::string> state_names(const OptimizerOptions& options);

/// The same optimizer with another momentum (of sgd and rmsprop) or beta1 (of adam and adamw).
OptimizerOptions with_momentum(OptimizerOptions optimizer, double momentum);

}  // namespace sweep
