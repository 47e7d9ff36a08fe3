// Optimizers by PyTorch's names, arguments and defaults.
//
// To add one: its options here, in the variant; its type, its maker and its overloads in optimizer.cpp; its
// formula in core/kernels/cpu/kernels/optimizer_kernels.cpp, and in optimizer_rule.h (the formula) and
// optimizer.cu (its constants) of core/kernels/cuda/kernels. Everything that is specific to one optimizer is
// an overload set without a fallback, so the compiler reports what is missing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/network/arguments.h"

namespace sweep {

/// Every optimizer that the engines implement, with its arguments except lr, which is passed to every step,
/// in the order that messages and the schema show. The first is the default.
/// Thread-safe, as all of this header.
std::span<const NamedType> optimizer_types();

/// Engines refuse numbers below 0, infinite ones and NaN, and a beta1 or beta2 from 1 on.
///
/// torch.optim.SGD. With w the weight, g its gradient, b the momentum buffer: g += weight_decay·w; b =
/// momentum·b + (1 − dampening)·g (b = g in the first step); g = nesterov ? g + momentum·b : b; w −= lr·g.
struct SgdOptions {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam with bias correction; weight decay is added to the gradient (L2). With `decoupled`,
/// torch.optim.AdamW: the weights are multiplied with 1 − lr · weight_decay in every step instead.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
};

/// torch.optim.RMSprop: s = alpha·s + (1 − alpha)·g²; with `centered`, s is replaced by s − mean(g)²; with
/// momentum, b = momentum·b + g / (sqrt(s) + eps), w −= lr·b.
struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};

/// The largest number of arrays that an optimizer keeps, see state_names().
inline constexpr std::size_t kMaxOptimizerStates = 3;

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions>;

/// Returns the optimizer of a type from optimizer_types(), with defaults for what is not `given`. Throws
/// ConfigError for an unknown type or argument, or one that is out of range.
OptimizerOptions make_optimizer(std::string_view type, const Arguments& given = {});

/// PyTorch's names of the arrays that the optimizer keeps, each with one value per parameter; at most
/// kMaxOptimizerStates. Engines store them in this order.
std::vector<std::string> state_names(const OptimizerOptions& options);

/// Whether the momentum may change during training. sgd and rmsprop: if it is not 0, since otherwise they
/// keep no array for it. adam and adamw: always (beta1).
bool has_momentum(const OptimizerOptions& options);

/// Returns the optimizer with another momentum (sgd, rmsprop), above 0, or beta1 (adam, adamw), in [0, 1).
OptimizerOptions with_momentum(OptimizerOptions options, double momentum);

/// The numbers of an optimizer, by the names of the structs' members.
std::vector<std::pair<std::string, double>> numbers_of(const OptimizerOptions& options);

}  // namespace sweep
