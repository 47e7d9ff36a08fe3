// The floating-point format of an engine's multiplications.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

enum class Precision {
  kFp32,
  /// Convolutions and linear layers round both operands to bf16, in the forward pass and for the gradient of
  /// the input; products, sums and everything else stay fp32.
  kBf16,
};

/// "fp32", "bf16", in the order of the enum.
std::span<const std::string> precision_names();
const std::string& precision_name(Precision precision);

/// Throws ConfigError, listing the allowed names, for any other name.
Precision parse_precision(std::string_view name);

}  // namespace sweep
