#include "core/spec/placement.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace sweep {

std::span<const std::string> placement_names() {
  static const std::array<std::string, 3> names = {"auto", "device", "host"};  // In the enum's order.
  return names;
}

const std::string& placement_name(Placement placement) {
  return placement_names()[static_cast<std::size_t>(placement)];
}

Placement parse_placement(std::string_view name) {
  const auto names = placement_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError("unknown placement \"" + std::string(name) + "\"; allowed: auto, device, host");
  return static_cast<Placement>(found - names.begin());
}

}  // namespace sweep
