#include "core/spec/precision.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace sweep {

std::span<const std::string> precision_names() {
  static const std::array<std::string, 2> names = {"fp32", "bf16"};  // In the enum's order.
  return names;
}

const std::string& precision_name(Precision precision) {
  return precision_names()[static_cast<std::size_t>(precision)];
}

Precision parse_precision(std::string_view name) {
  const auto names = precision_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError("unknown precision \"" + std::string(name) + "\"; allowed: fp32, bf16");
  return static_cast<Precision>(found - names.begin());
}

}  // namespace sweep
