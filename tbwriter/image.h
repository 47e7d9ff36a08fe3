// Pictures as TensorBoard stores them: PNG, encoded once, usable in any number of runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

/// Red, green and blue.
using Color = std::array<std::uint8_t, 3>;

struct GridOptions {
  int columns = 8;              // >= 1; fewer pictures than that make a narrower grid
  int padding = 2;              // >= 0, pixels around and between pictures
  std::uint8_t background = 0;  // of the padding and of missing pictures
};

/// Encodes samples of 8 bits, [height, width, channels].
/// Throws UsageError if a size is not positive or the number of samples does not match.
EncodedImage encode_image(std::span<const std::uint8_t> pixels, ImageSize size);

/// Encodes a drawing of few colours, which is faster and smaller than as RGB: `pixels`, [height, width], are
/// numbers of colours in `palette`. Throws UsageError if a size is not positive, `size` has other channels
/// than 1, the number of pixels does not match, the palette has none or more than 256 colours, or a pixel has
/// a number that it does not have.
EncodedImage encode_drawing(std::span<const std::uint8_t> pixels, ImageSize size,
                            std::span<const Color> palette);

/// Encodes pictures side by side, `columns` a row, as torchvision's make_grid places them: 64 of 28x28 make
/// 242x242. Throws UsageError if a size is not positive or the number of values does not match.
EncodedImage encode_image_grid(std::span<const std::uint8_t> pixels, BatchSize size,
                               const GridOptions& options = {});

/// The same for values in [0, 1]: others are clamped, NaN becomes 0.
EncodedImage encode_image_grid(std::span<const float> pixels, BatchSize size,
                               const GridOptions& options = {});

/// The sizes of frames stored one after another, [frames, height, width, channels].
struct VideoSize {
  std::int64_t frames = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  // 1 gray or 3 RGB
};

/// Encodes samples of 8 bits as an animated GIF that repeats for ever. Gray frames stay exact; colours are
/// rounded to 252. Throws UsageError for sizes that do not fit, or a rate that is not positive.
EncodedImage encode_video(std::span<const std::uint8_t> pixels, VideoSize size, double frames_per_second);

/// A rectangle of pixels, ends included; what lies outside the picture is not drawn. `label` stands on a
/// ground of the box's colour in the lower left corner, a line of 8 pixels' height; other characters than
/// ASCII's are drawn as a frame.
struct Box {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;
  std::array<std::uint8_t, 3> color = {255, 0, 0};  // red, green, blue
  std::string_view label = {};
};

/// Encodes a picture, as RGB, with the outlines of boxes drawn into it, `thickness` pixels wide, inwards, and
/// their labels. Throws UsageError as encode_image does; the picture has 1 or 3 channels.
EncodedImage encode_image_with_boxes(std::span<const std::uint8_t> pixels, ImageSize size,
                                     std::span<const Box> boxes, int thickness = 1);

}  // namespace sweep::tbwriter
