// Pictures that programs write for TensorBoard.
#pragma once

#include <cstdint>
#include <vector>

/// A picture that differs with k: a diagonal of squares, [side, side, channels].
inline std::vector<std::uint8_t> picture(int k, int side, int channels) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      for (int c = 0; c < channels; ++c)
        pixels.push_back(static_cast<std::uint8_t>((x * (c + 1) + y * k) * 5));
    }
  }
  return pixels;
}

/// [height, width, channels] as [channels, height, width].
inline std::vector<std::uint8_t> planes(const std::vector<std::uint8_t>& pixels, std::size_t channels) {
  std::vector<std::uint8_t> result;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c; i < pixels.size(); i += channels) result.push_back(pixels[i]);
  }
  return result;
}
