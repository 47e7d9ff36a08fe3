// Loss functions by PyTorch's names and arguments.
#pragma once

#include <span>
#include <string>

#include "core/spec/arguments.h"

namespace sweep {

/// A loss as the sweep file describes it.
struct LossSpec {
  std::string type = "cross_entropy";  // a name from loss_types()
  Arguments arguments = {};            // what was given, without defaults
};

/// Every loss that the engines implement, with its arguments.
std::span<const NamedType> loss_types();

/// cross_entropy: torch.nn.CrossEntropyLoss of the outputs, averaged over the batch; with label smoothing s
/// the target is (1 − s) of the label and s spread over all classes. mse: torch.nn.MSELoss of outputs and
/// one-hot labels, averaged over batch and classes.
struct LossOptions {
  enum class Kind { kCrossEntropy, kMse } kind = Kind::kCrossEntropy;
  double label_smoothing = 0;  // of cross_entropy, in [0, 1]
};

/// Fills in defaults and validates. Throws ConfigError for an unknown type or
/// argument, or one that is out of range.
LossOptions resolve_loss(const LossSpec& spec);

}  // namespace sweep
