// Pixels as bytes, from both types of pictures. Not part of the installed interface.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sweep::tbwriter {

inline std::uint8_t to_byte(std::uint8_t value) { return value; }

/// Rounds, so that k / 255 becomes k for every k. The comparison is false for NaN, which becomes 0.
inline std::uint8_t to_byte(float value) {
  if (!(value > 0.0f)) return 0;
  const float scaled = std::min(value, 1.0f) * 255.0f + 0.5f;
  return static_cast<std::uint8_t>(scaled);
}

}  // namespace sweep::tbwriter
