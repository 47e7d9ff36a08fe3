#include "core/data/split_method.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace sweep {

std::span<const std::string> split_method_names() {
  static const std::array<std::string, 4> names = {"auto", "end", "random",
                                                   "stratified"};  // In the enum's order.
  return names;
}

const std::string& split_method_name(SplitMethod method) {
  return split_method_names()[static_cast<std::size_t>(method)];
}

SplitMethod parse_split_method(std::string_view name) {
  const auto names = split_method_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw ConfigError("unknown split \"" + std::string(name) + "\"; allowed: auto, end, random, stratified");
  }
  return static_cast<SplitMethod>(found - names.begin());
}

}  // namespace sweep
