// Numbers of statistics as people read them.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

namespace sweep {

/// A share from 0 to 1: "12.5%".
inline std::string share_text(double share) { return fmt::format("{:.1f}%", 100 * share); }

/// A probability with four decimals, "< 0.0001" below them; `none` if there is none.
inline std::string p_text(const std::optional<double>& p, const char* none) {
  if (!p) return none;
  return *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

}  // namespace sweep
