// Pixels as bytes, from both types of pictures. Not part of the installed interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

inline std::uint8_t to_byte(std::uint8_t value) { return value; }

/// Rounds, so that k / 255 becomes k for every k. The comparison is false for NaN, which becomes 0.
inline std::uint8_t to_byte(float value) {
  if (!(value > 0.0f)) return 0;
  const float scaled = std::min(value, 1.0f) * 255.0f + 0.5f;
  return static_cast<std::uint8_t>(scaled);
}

/// How many values the view has.
inline std::size_t count_values(const Pixels& pixels) {
  return std::visit([](const auto& values) { return values.size(); }, pixels);
}

/// Copies `count` values from `begin` on as bytes to every `stride`-th place of `to`.
inline void copy_values(const Pixels& pixels, std::size_t begin, std::int64_t count, std::uint8_t* to,
                        std::int64_t stride) {
  const auto copy = [&](const auto& values) {
    const auto* from = values.data() + begin;
    for (std::int64_t i = 0; i < count; ++i) to[i * stride] = to_byte(from[i]);
  };
  std::visit(copy, pixels);
}

}  // namespace sweep::tbwriter
