// What people write for the values of an enum.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace sweep {

/// The names of the values 0, 1, … of `Enum`. Immutable; thread-safe.
template <typename Enum>
class EnumNames {
 public:
  /// `what` they are, for messages: "placement".
  EnumNames(std::string what, std::vector<std::string> names)
      : what_(std::move(what)), names_(std::move(names)) {}

  /// In the order of the enum.
  const std::vector<std::string>& all() const { return names_; }
  const std::string& of(Enum value) const { return names_.at(static_cast<std::size_t>(value)); }
  /// Returns nothing for any other name.
  std::optional<Enum> find(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names_.begin()));
  }
  /// Throws ConfigError, which lists the names, for any other.
  Enum parse(std::string_view name) const {
    if (const std::optional<Enum> value = find(name)) return *value;
    std::string allowed;
    for (const std::string& known : names_) allowed += (allowed.empty() ? "" : ", ") + known;
    throw ConfigError("unknown " + what_ + " \"" + std::string(name) + "\"; allowed: " + allowed);
  }

 private:
  std::string what_;
  std::vector<std::string> names_;
};

}  // namespace sweep
