// Pixels to draw on, with the letters of GNU Unifont, which the build puts into the library; and PNG files of
// them. Not part of the installed interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// Height in pixels of every letter.
inline constexpr std::int64_t kLetterHeight = 16;

/// Width in pixels of a text. What Unifont does not have, and invalid UTF-8, is the sign U+FFFD.
std::int64_t text_width(std::string_view text);

inline std::uint8_t to_byte(std::uint8_t value) { return value; }

/// Rounds, so that k / 255 becomes k for every k. The comparison is false for NaN, which becomes 0.
inline std::uint8_t to_byte(float value) {
  if (!(value > 0.0f)) return 0;
  const float scaled = std::min(value, 1.0f) * 255.0f + 0.5f;
  return static_cast<std::uint8_t>(scaled);
}

/// A picture to draw on, [height, width, channels] of 8 bits, up to 3 channels. What lies outside of it is
/// not drawn. With 1 channel, a colour is its first number.
struct Canvas {
  explicit Canvas(ImageSize extents, std::uint8_t ground = 0);

  /// Fills a rectangle, ends included.
  void fill(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom, const Color& color);

  /// Draws a text whose upper left corner is at (left, top).
  void write(std::string_view text, std::int64_t left, std::int64_t top, const Color& color);
  /// Draws a text whose first letter is at the lower end, above `bottom`, and whose tops point to the left.
  void write_upwards(std::string_view text, std::int64_t left, std::int64_t bottom, const Color& color);
  void dot(std::int64_t x, std::int64_t y, const Color& color) {
    if (x < 0 || x >= size.width || y < 0 || y >= size.height) return;
    for (std::int64_t c = 0; c < size.channels; ++c) at(x, y)[c] = color[static_cast<std::size_t>(c)];
  }

  /// Copies picture `index` of `pixels` to (left, top), each of its pixels as `scale` times as many each way.
  /// It must be inside.
  void put(const Pixels& pixels, BatchSize picture, std::int64_t index, std::int64_t left, std::int64_t top,
           std::int64_t scale = 1);

  std::uint8_t* at(std::int64_t x, std::int64_t y) {
    return pixels.data() + (y * size.width + x) * size.channels;
  }

  ImageSize size;
  std::vector<std::uint8_t> pixels;
};

/// Returns a PNG file, tuned for speed. `pixels` are [height, width, channels] with 8 bits each; the sizes
/// must match, be positive, and channels be 1 to 4. With a palette of up to 256 colours, `size` has 1 channel
/// and the pixels are indices into it. With `frame_millis`, which is 1 to 65535, the file is an animation
/// that repeats forever, and `pixels` are its frames, [frames, height, width, channels]. Throws UsageError if
/// the file would be too large. Thread-safe.
std::string encode_png(std::span<const std::uint8_t> pixels, ImageSize size,
                       std::span<const Color> palette = {}, std::int64_t frame_millis = 0);

}  // namespace sweep::tbwriter
