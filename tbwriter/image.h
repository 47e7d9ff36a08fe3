// Encodes pictures and videos as TensorBoard stores them. An encoded picture can
// be added to any number of runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace sweep::tbwriter {

/// An encoded picture. Threads may share one that no thread changes.
struct EncodedImage {
  std::int64_t width = 0;     // pixels
  std::int64_t height = 0;    // pixels
  std::int64_t channels = 0;  // 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA; as TensorBoard's "colorspace"
  std::string bytes = {};     // a PNG file, also of a video
};

/// A view of the values of pictures: bytes, or floats in [0, 1]; other floats are clamped, NaN becomes 0.
/// Converts implicitly from spans, vectors and arrays. Owns nothing.
using Pixels = std::variant<std::span<const std::uint8_t>, std::span<const float>>;

/// How a picture lies in memory. One without channels, [height, width], has 1 channel in either order.
enum class PixelOrder {
  kHwc,  // [height, width, channels]
  kChw,  // [channels, height, width], as networks use it
};

/// The shape of a picture.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  // 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA
  PixelOrder order = PixelOrder::kHwc;
};

/// The shape of a batch of pictures, [count, channels, height, width], as networks use it.
struct BatchSize {
  std::int64_t count = 0;
  std::int64_t channels = 1;  // 1 gray or 3 RGB
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Red, green and blue.
using Color = std::array<std::uint8_t, 3>;

/// The layout of a grid of pictures.
struct GridOptions {
  int columns = 8;              // >= 1; a grid of fewer pictures is narrower
  int padding = 2;              // pixels around and between pictures, 0 to 4096
  std::uint8_t background = 0;  // value of the padding and of missing pictures
};

/// Encodes `pixels`, which lie in the order of `size`, with 8 bits each. Throws UsageError if an extent is
/// not in 1 … 2^20, channels are not in 1 … 4, or the number of values does not match. This and the functions
/// below are thread-safe.
EncodedImage encode_image(const Pixels& pixels, ImageSize size);

/// Encodes a drawing with few colours, faster and smaller than as RGB: `pixels`, [height, width], are indices
/// into `palette`. Throws UsageError for wrong extents as encode_image() does, if size.channels is not 1, the
/// palette does not have 1 to 256 colours, or an index is out of range.
EncodedImage encode_drawing(std::span<const std::uint8_t> pixels, ImageSize size,
                            std::span<const Color> palette);

/// Encodes pictures as a grid, `columns` per row, with the layout of torchvision's make_grid: 64 pictures of
/// 28x28 make one of 242x242. Throws UsageError for wrong extents as encode_image() does, for channels other
/// than 1 and 3, and for options that are out of range.
EncodedImage encode_image_grid(const Pixels& pixels, BatchSize size, const GridOptions& options = {});

/// The shape of videos, [videos, frames, channels, height, width], as networks use it.
struct VideoSize {
  std::int64_t videos = 1;
  std::int64_t frames = 0;
  std::int64_t channels = 1;  // 1 gray or 3 RGB
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Encodes a video as an animated PNG that repeats forever: browsers show it as they show the GIF of
/// PyTorch's writer, which rounds colours. Several videos are one, side by side, with the layout of PyTorch's
/// add_video(): a power of two of places, black without a video, as many rows as columns or half as many. The
/// time of a frame is rounded to 1/1000 s, and at least that. Throws UsageError for wrong extents as
/// encode_image() does, and for a frame rate that is not positive.
EncodedImage encode_video(const Pixels& pixels, VideoSize size, double frames_per_second);

/// A rectangle of pixels, ends included; parts outside the picture are not drawn. `label` is
/// drawn 16 pixels high on a background of the box's colour, in the lower left corner.
struct Box {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;
  Color color = {255, 0, 0};
  std::string_view label = {};
};

/// Encodes a picture of 1 or 3 channels as RGB with the outlines of boxes and their labels. Later boxes cover
/// earlier ones. Throws UsageError as encode_image() does.
EncodedImage encode_image_with_boxes(const Pixels& pixels, ImageSize size, std::span<const Box> boxes);

}  // namespace sweep::tbwriter
