// With how many bits an engine multiplies.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

enum class Precision {
  kFp32,
  /// Convolutions and linear layers round the two factors of their outputs and of their inputs' gradients to
  /// bf16; products, sums and everything else stay fp32.
  kBf16,
};

/// "fp32", "bf16".
std::span<const std::string> precision_names();
const std::string& precision_name(Precision precision);

/// Throws ConfigError, saying what is allowed, if there is no such name.
Precision parse_precision(std::string_view name);

}  // namespace sweep
