// Pictures as TensorBoard stores them: PNG, encoded once, usable in any number of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sweep::tbwriter {

/// A picture ready to be written. Copyable; immutable by custom, so threads may share one.
struct EncodedImage {
  std::int64_t width = 0;     // pixels
  std::int64_t height = 0;    // pixels
  std::int64_t channels = 0;  // 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA; as TensorBoard's "colorspace"
  std::string bytes = {};     // the file: PNG, or GIF for a video
};

/// The sizes of one picture whose samples are stored [height, width, channels].
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  // 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA
};

/// The sizes of pictures stored one after another, [count, channels, height, width], as networks have them.
struct BatchSize {
  std::int64_t count = 0;
  std::int64_t channels = 1;  // 1 gray or 3 RGB
  std::int64_t height = 0;
  std::int64_t width = 0;
};

struct GridOptions {
  int columns = 8;              // >= 1; fewer pictures than that make a narrower grid
  int padding = 2;              // >= 0, pixels around and between pictures
  std::uint8_t background = 0;  // of the padding and of missing pictures
};

/// Encodes samples of 8 bits, [height, width, channels].
/// Throws UsageError if a size is not positive or the number of samples does not match.
EncodedImage encode_image(std::span<const std::uint8_t> pixels, ImageSize size);

/// Encodes pictures side by side, `columns` a row, as torchvision's make_grid places them: 64 of 28x28 make
/// 242x242. Throws UsageError if a size is not positive or the number of values does not match.
EncodedImage encode_image_grid(std::span<const std::uint8_t> pixels, BatchSize size,
                               const GridOptions& options = {});

/// The same for values in [0, 1]: others are clamped, NaN becomes 0.
EncodedImage encode_image_grid(std::span<const float> pixels, BatchSize size,
                               const GridOptions& options = {});

}  // namespace sweep::tbwriter
