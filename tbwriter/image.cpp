#include "tbwriter/image.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/label_font.h"
#include "tbwriter/pixel.h"
#include "tbwriter/values.h"

namespace sweep::tbwriter {
namespace {

constexpr std::int64_t kMaxExtent = 1 << 20;  // pixels; products of three extents fit into 64 bits

void check_extent(const char* dimension, std::int64_t extent) {
  if (extent >= 1 && extent <= kMaxExtent) return;
  throw UsageError(std::string("an image's ") + dimension + " is " + std::to_string(extent) +
                   ", but must be 1 to " + std::to_string(kMaxExtent));
}

void check_count(std::size_t got, std::int64_t wanted, const std::string& shape) {
  if (got == static_cast<std::size_t>(wanted)) return;
  throw UsageError("an image of " + shape + " has " + std::to_string(wanted) + " values, but " +
                   std::to_string(got) + " were given");
}

// Sets a pixel of an RGB canvas.
void set_pixel(std::vector<std::uint8_t>& canvas, ImageSize size, std::int64_t x, std::int64_t y,
               const Color& color) {
  std::copy(color.begin(), color.end(), &canvas[static_cast<std::size_t>((y * size.width + x) * 3)]);
}

void draw_outline(std::vector<std::uint8_t>& canvas, ImageSize size, const Box& box, int thickness) {
  const std::int64_t left = std::max<std::int64_t>(box.left, 0), right = std::min(box.right, size.width - 1);
  const std::int64_t top = std::max<std::int64_t>(box.top, 0), bottom = std::min(box.bottom, size.height - 1);
  for (std::int64_t y = top; y <= bottom; ++y) {
    for (std::int64_t x = left; x <= right; ++x) {
      const std::int64_t inside = std::min({x - box.left, box.right - x, y - box.top, box.bottom - y});
      if (inside < thickness) set_pixel(canvas, size, x, y, box.color);
    }
  }
}

// White on dark colours, otherwise black; weights of red, green and blue as in ITU-R BT.601.
Color readable_on(const Color& color) {
  const int brightness = (299 * color[0] + 587 * color[1] + 114 * color[2]) / 1000;
  const std::uint8_t value = brightness < 64 ? 255 : 0;
  return {value, value, value};
}

// Draws the text with a margin of one pixel of background.
void draw_label(std::vector<std::uint8_t>& canvas, ImageSize size, const Box& box) {
  if (box.label.empty()) return;
  const auto set = [&](std::int64_t x, std::int64_t y, const Color& color) {
    const std::int64_t at_y = box.bottom - (kLetterHeight + 1) + y;
    if (at_y < 0 || at_y >= size.height) return;
    const std::int64_t at_x = box.left + x;
    if (at_x >= 0 && at_x < size.width) set_pixel(canvas, size, at_x, at_y, color);
  };
  const std::int64_t width = text_width(box.label) + 1;
  for (std::int64_t y = 0; y < kLetterHeight + 2; ++y) {
    for (std::int64_t x = 0; x < width; ++x) set(x, y, box.color);
  }
  const Color ink = readable_on(box.color);
  draw_text(box.label, [&](std::int64_t x, std::int64_t y) { set(x + 1, y + 1, ink); });
}

std::string shape_of(ImageSize size) {
  const auto [height, width, channels, order] = size;
  return order == PixelOrder::kChw ? shape_text({channels, height, width})
                                   : shape_text({height, width, channels});
}

void check_image(std::size_t values, ImageSize size) {
  check_extent("height", size.height);
  check_extent("width", size.width);
  if (size.channels < 1 || size.channels > 4) {
    throw UsageError("an image has " + std::to_string(size.channels) + " channels, but must have 1 to 4");
  }
  check_count(values, size.height * size.width * size.channels, shape_of(size));
}

// The picture as bytes, [height, width, channels]; a view of `kept` if it is not that already.
std::span<const std::uint8_t> hwc_bytes(const Pixels& pixels, ImageSize size,
                                        std::vector<std::uint8_t>& kept) {
  const auto* bytes = std::get_if<std::span<const std::uint8_t>>(&pixels);
  if (bytes != nullptr && size.order == PixelOrder::kHwc) return *bytes;
  kept.resize(count_values(pixels));
  const std::int64_t row = size.width * size.channels;
  if (size.order == PixelOrder::kChw) {
    copy_picture(pixels, 0, {1, size.channels, size.height, size.width}, kept.data(), row);
  } else {
    copy_picture(pixels, 0, {1, 1, size.height, row}, kept.data(), row);
  }
  return kept;
}

}  // namespace

EncodedImage encode_image_grid(const Pixels& pixels, BatchSize size, const GridOptions& options) {
  check_extent("count", size.count);
  check_extent("height", size.height);
  check_extent("width", size.width);
  if (size.channels != 1 && size.channels != 3) {
    throw UsageError("a grid's pictures have " + std::to_string(size.channels) +
                     " channels, but must have 1 or 3");
  }
  if (options.columns < 1 || options.padding < 0 || options.padding > 4096) {
    throw UsageError("a grid has " + std::to_string(options.columns) + " columns and " +
                     std::to_string(options.padding) +
                     " pixels of padding, but needs 1 or more and 0 to 4096");
  }
  const auto [count, channels, height, width] = size;
  check_count(count_values(pixels), count * channels * height * width,
              shape_text({count, channels, height, width}));
  const std::int64_t columns = std::min<std::int64_t>(options.columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t padding = options.padding;
  const ImageSize whole{rows * (height + padding) + padding, columns * (width + padding) + padding, channels};
  check_extent("height", whole.height);
  check_extent("width", whole.width);
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(whole.height * whole.width * channels),
                                   options.background);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t top = padding + i / columns * (height + padding);
    const std::int64_t left = padding + i % columns * (width + padding);
    copy_picture(pixels, i * channels * height * width, size,
                 canvas.data() + (top * whole.width + left) * channels, whole.width * channels);
  }
  return {whole.width, whole.height, channels, encode_png(canvas, whole)};
}

EncodedImage encode_image(const Pixels& pixels, ImageSize size) {
  check_image(count_values(pixels), size);
  std::vector<std::uint8_t> kept;
  return {size.width, size.height, size.channels, encode_png(hwc_bytes(pixels, size, kept), size)};
}

EncodedImage encode_drawing(std::span<const std::uint8_t> pixels, ImageSize size,
                            std::span<const Color> palette) {
  check_extent("height", size.height);
  check_extent("width", size.width);
  if (size.channels != 1) {
    throw UsageError("a drawing's pixels have " + std::to_string(size.channels) +
                     " channels, but each is the number of a colour");
  }
  check_count(pixels.size(), size.height * size.width, shape_text({size.height, size.width}));
  if (palette.empty() || palette.size() > 256) {
    throw UsageError("a palette has " + std::to_string(palette.size()) + " colours, but needs 1 to 256");
  }
  const std::uint8_t largest = *std::max_element(pixels.begin(), pixels.end());
  if (largest >= palette.size()) {
    throw UsageError("a drawing has a pixel of colour " + std::to_string(largest) + ", but the palette has " +
                     std::to_string(palette.size()) + ", counted from 0");
  }
  return {size.width, size.height, 3, encode_png(pixels, size, palette)};
}

EncodedImage encode_image_with_boxes(const Pixels& pixels, ImageSize size, std::span<const Box> boxes,
                                     int thickness) {
  check_extent("height", size.height);
  check_extent("width", size.width);
  if ((size.channels != 1 && size.channels != 3) || thickness < 1) {
    throw UsageError("an image with boxes has " + std::to_string(size.channels) + " channels and lines of " +
                     std::to_string(thickness) + " pixels, but needs 1 or 3 channels and lines of 1 or more");
  }
  check_count(count_values(pixels), size.height * size.width * size.channels, shape_of(size));
  std::vector<std::uint8_t> kept, canvas;
  canvas.reserve(static_cast<std::size_t>(size.height * size.width * 3));
  for (const std::uint8_t value : hwc_bytes(pixels, size, kept))
    canvas.insert(canvas.end(), size.channels == 1 ? 3 : 1, value);
  for (Box box : boxes) {
    // Still far outside every picture, but without overflow in sums.
    for (std::int64_t* place : {&box.left, &box.top, &box.right, &box.bottom})
      *place = std::clamp(*place, -2 * kMaxExtent, 2 * kMaxExtent);
    draw_outline(canvas, size, box, thickness);
    draw_label(canvas, size, box);
  }
  return encode_image(canvas, {size.height, size.width, 3});
}

}  // namespace sweep::tbwriter
