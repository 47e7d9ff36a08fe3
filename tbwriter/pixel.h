// Pixels as bytes in the order of a file, and PNG files of them. Not part of the installed interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
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

/// "2 x 3 x 4", for messages.
inline std::string shape_text(std::initializer_list<std::int64_t> extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

/// Copies a picture, the values [channels, height, width] from `begin` on, as bytes [height, width, channels]
/// into a larger picture, whose row has `row_bytes` bytes. `to` is the place of the first pixel.
inline void copy_picture(const Pixels& pixels, std::int64_t begin, BatchSize size, std::uint8_t* to,
                         std::int64_t row_bytes) {
  const auto copy = [&](const auto& values) {
    const auto* from = values.data() + begin;
    for (std::int64_t c = 0; c < size.channels; ++c) {
      for (std::int64_t y = 0; y < size.height; ++y, from += size.width) {
        for (std::int64_t x = 0; x < size.width; ++x)
          to[y * row_bytes + x * size.channels + c] = to_byte(from[x]);
      }
    }
  };
  std::visit(copy, pixels);
}

/// Returns a PNG file, tuned for speed. `pixels` are [height, width, channels] with 8 bits each; the sizes
/// must match, be positive, and channels be 1 to 4. With a palette of up to 256 colours, `size` has 1 channel
/// and the pixels are indices into it. Throws UsageError if the file would be too large. Thread-safe.
std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size,
                       std::span<const Color> palette = {});

}  // namespace sweep::tbwriter
