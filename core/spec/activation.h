// The activation functions: one table of their layer types and arguments, for networks and for every engine.
//
// To add one: its name in the enum, its row in activation.cpp, and its formulas in
// core/kernels/cpu/kernels/activation_kernels.cpp and core/kernels/cuda/kernels/activation.h. The switches
// there have no default, so the compiler names them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/spec/arguments.h"

namespace sweep {

enum class Activation { kRelu, kLeakyRelu, kTanh, kSigmoid, kGelu };

/// How the sweep file, the schema and TensorBoard's graph name an activation.
struct ActivationType {
  Activation activation;
  std::string_view torch_class;  // in torch.nn: "LeakyReLU"
  NamedType type;                // the layer type, with one argument at most, a number
};

/// All activations, in the order in which messages and the schema list their layer types. Thread-safe.
std::span<const ActivationType> activation_types();

/// Returns the row of the activation whose layer type is `layer_type`, or nullptr if it is not an activation.
const ActivationType* find_activation(std::string_view layer_type);

/// Returns the activation whose layer type is `layer_type`, or nothing if it is not an activation.
std::optional<Activation> activation_of(std::string_view layer_type);

/// The argument of the activation function, such as leaky_relu's negative_slope; 0 if it takes none.
/// `arguments` are those of a layer of a type from activation_types(), with defaults filled in.
float activation_coefficient(std::string_view layer_type, const Arguments& arguments);

}  // namespace sweep
