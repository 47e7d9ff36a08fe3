#include "tbwriter/image.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "tbwriter/canvas.h"
#include "tbwriter/error.h"
#include "tbwriter/values.h"

namespace sweep::tbwriter {
namespace {

constexpr std::int64_t kMaxExtent = 1 << 20;  // of any dimension; products of three extents fit into 64 bits

struct Extent {
  const char* dimension;
  std::int64_t size;
};

void check_extent(const std::string& what, const Extent& extent) {
  require(extent.size >= 1 && extent.size <= kMaxExtent, what, "'s ", extent.dimension, " is ", extent.size,
          ", but must be 1 to ", kMaxExtent);
}

// Throws UsageError unless all extents are in range and their product is the number of values.
void check_shape(const std::string& what, std::initializer_list<Extent> shape, std::size_t values) {
  std::string text;
  std::size_t wanted = 1;
  for (const Extent& extent : shape) {
    check_extent(what, extent);
    text += (text.empty() ? "" : " x ") + std::to_string(extent.size);
    // A product of five may overflow; one that is above the number of values cannot become right any more.
    if (wanted <= values) wanted *= static_cast<std::size_t>(extent.size);
  }
  require(wanted == values, what, " of ", text, " cannot have ", values, " values");
}

void check_channels(const std::string& what, std::int64_t channels, bool may_have_alpha = false) {
  require(channels == 1 || channels == 3 || (may_have_alpha && (channels == 2 || channels == 4)), what,
          " has ", channels, " channels, but must have ", may_have_alpha ? "1 to 4" : "1 or 3");
}

Canvas canvas_of(const Pixels& pixels, ImageSize size) {
  const Extent height{"height", size.height}, width{"width", size.width}, channels{"channels", size.channels};
  const bool has_planes = size.order == PixelOrder::kChw;
  if (has_planes) {
    check_shape("an image", {channels, height, width}, count_values(pixels));
  } else {
    check_shape("an image", {height, width, channels}, count_values(pixels));
  }
  Canvas canvas(size);
  const std::int64_t row = size.width * size.channels;  // without planes, a row is one of a gray picture
  canvas.put(
      pixels,
      has_planes ? BatchSize{1, size.channels, size.height, size.width} : BatchSize{1, 1, size.height, row},
      0, 0, 0);
  return canvas;
}

// Pictures in rows and columns: picture i is at place_of(i), counted along the rows.
template <class PlaceOf>
Canvas arranged(const Pixels& pixels, BatchSize size, std::int64_t rows, std::int64_t columns,
                std::int64_t padding, std::uint8_t ground, PlaceOf place_of) {
  const std::int64_t height = size.height + padding, width = size.width + padding;
  Canvas canvas({rows * height + padding, columns * width + padding, size.channels}, ground);
  for (std::int64_t i = 0; i < size.count; ++i) {
    const std::int64_t place = place_of(i);
    canvas.put(pixels, size, i, padding + place % columns * width, padding + place / columns * height);
  }
  return canvas;
}

EncodedImage encoded(const Canvas& canvas) {
  const ImageSize& size = canvas.size;
  return {size.width, size.height, size.channels, encode_png(canvas.pixels, size)};
}

// White on dark colours, otherwise black; weights of red, green and blue as in ITU-R BT.601.
Color readable_on(const Color& color) {
  const int brightness = (299 * color[0] + 587 * color[1] + 114 * color[2]) / 1000;
  const std::uint8_t value = brightness < 64 ? 255 : 0;
  return {value, value, value};
}

void draw_box(Canvas& canvas, Box box) {
  // Still far outside every picture, but without overflow in sums.
  for (std::int64_t* place : {&box.left, &box.top, &box.right, &box.bottom})
    *place = std::clamp(*place, -2 * kMaxExtent, 2 * kMaxExtent);
  const auto& [left, top, right, bottom, color, label] = box;
  canvas.fill(left, top, right, std::min(top, bottom), color);
  canvas.fill(left, std::max(top, bottom), right, bottom, color);
  canvas.fill(left, top, std::min(left, right), bottom, color);
  canvas.fill(std::max(left, right), top, right, bottom, color);
  if (label.empty()) return;
  // With a margin of one pixel.
  const std::int64_t label_top = bottom - kLetterHeight - 1;
  canvas.fill(left, label_top, left + text_width(label), bottom, color);
  canvas.write(label, left + 1, label_top + 1, readable_on(color));
}

}  // namespace

EncodedImage encode_image_grid(const Pixels& pixels, BatchSize size, const GridOptions& options) {
  const auto [count, channels, height, width] = size;
  check_channels("a grid", channels);
  check_shape("a grid", {{"count", count}, {"channels", channels}, {"height", height}, {"width", width}},
              count_values(pixels));
  require(options.columns >= 1 && options.padding >= 0 && options.padding <= 4096, "a grid has ",
          options.columns, " columns and ", options.padding,
          " pixels of padding, but needs 1 or more and 0 to 4096");
  const std::int64_t columns = std::min<std::int64_t>(options.columns, count);
  const std::int64_t rows = (count + columns - 1) / columns, padding = options.padding;
  check_extent("a grid", {"height", rows * (height + padding) + padding});
  check_extent("a grid", {"width", columns * (width + padding) + padding});
  return encoded(arranged(pixels, size, rows, columns, padding, options.background,
                          [](std::int64_t picture) { return picture; }));
}

EncodedImage encode_video(const Pixels& pixels, VideoSize size, double frames_per_second) {
  const auto [videos, frames, channels, height, width] = size;
  check_channels("a video", channels);
  check_shape(
      "a video",
      {{"videos", videos}, {"frames", frames}, {"channels", channels}, {"height", height}, {"width", width}},
      count_values(pixels));
  require(frames_per_second > 0, "a video needs more than 0 frames per second");
  // There are 2^bits places.
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(videos - 1)));
  const std::int64_t rows = std::int64_t{1} << bits / 2, columns = std::int64_t{1} << (bits - bits / 2);
  const ImageSize whole{rows * height, columns * width, channels};
  check_extent("a video", {"height", whole.height});
  check_extent("a video", {"width", whole.width});
  const BatchSize pictures{videos * frames, channels, height, width};
  const auto place_of = [frame_count = frames, places = rows * columns](std::int64_t picture) {
    return picture % frame_count * places + picture / frame_count;
  };
  // The frames are below each other, as a file has them.
  const Canvas canvas = arranged(pixels, pictures, frames * rows, columns, 0, 0, place_of);
  const auto millis = std::lround(std::clamp(1000 / frames_per_second, 1.0, 65535.0));
  return {whole.width, whole.height, channels, encode_png(canvas.pixels, whole, {}, millis)};
}

EncodedImage encode_image(const Pixels& pixels, ImageSize size) {
  check_channels("an image", size.channels, true);
  return encoded(canvas_of(pixels, size));
}

EncodedImage encode_drawing(std::span<const std::uint8_t> pixels, ImageSize size,
                            std::span<const Color> palette) {
  require(size.channels == 1, "a drawing's pixels have ", size.channels,
          " channels, but each is the number of a colour");
  check_shape("a drawing", {{"height", size.height}, {"width", size.width}}, pixels.size());
  require(!palette.empty() && palette.size() <= 256, "a palette has ", palette.size(),
          " colours, but needs 1 to 256");
  const std::uint8_t largest = *std::max_element(pixels.begin(), pixels.end());
  require(largest < palette.size(), "a drawing has a pixel of colour ", largest, ", but the palette has ",
          palette.size(), ", counted from 0");
  return {size.width, size.height, 3, encode_png(pixels, size, palette)};
}

EncodedImage encode_image_with_boxes(const Pixels& pixels, ImageSize size, std::span<const Box> boxes) {
  check_channels("an image with boxes", size.channels);
  const Canvas picture = canvas_of(pixels, size);
  Canvas canvas({size.height, size.width, 3});
  for (std::size_t i = 0; i < canvas.pixels.size(); ++i)
    canvas.pixels[i] = picture.pixels[size.channels == 1 ? i / 3 : i];
  for (const Box& box : boxes) draw_box(canvas, box);
  return encoded(canvas);
}

}  // namespace sweep::tbwriter
