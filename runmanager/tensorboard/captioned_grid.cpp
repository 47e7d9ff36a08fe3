#include "runmanager/tensorboard/captioned_grid.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tbwriter/label_font.h"

namespace sweep {
namespace {

using tbwriter::text_width;

constexpr std::int64_t kWidestCaption = 144;
constexpr std::int64_t kSpace = 8;     // after a caption, so that it does not run into the next
constexpr std::size_t kMinWidth = 64;  // of a picture; smaller ones are enlarged
constexpr std::size_t kGap = 4;        // pixels around pictures and captions
constexpr std::size_t kLineHeight = tbwriter::kLetterHeight + 1;

// What is before and after the caption's line break.
std::array<std::string, 2> lines_of(const std::string& caption) {
  const std::size_t at = caption.find('\n');
  return {caption.substr(0, at), at == std::string::npos ? "" : caption.substr(at + 1)};
}

}  // namespace

std::size_t shown_pictures(const Shape& picture, std::size_t limit) {
  constexpr std::size_t kMaxBytes = std::size_t{48} << 20;  // of a record of 64 MiB; PNG may save nothing
  constexpr std::size_t kColors = 3;                        // with captions, gray pictures also have these
  const auto pixels = static_cast<std::size_t>(picture.at(1)) * static_cast<std::size_t>(picture.at(2));
  return std::min(limit, kMaxBytes / (kColors * pixels));
}

std::string cut_text(std::string text, std::int64_t width) {
  if (text_width(text) <= width) return text;
  while (!text.empty() && text_width(text + "..") > width) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
    text.pop_back();
  }
  return text + "..";
}

tbwriter::EncodedImage draw_captioned_grid(std::span<const std::uint8_t> pixels, tbwriter::BatchSize size,
                                           std::span<const std::string> captions, std::size_t columns) {
  const auto count = static_cast<std::size_t>(size.count), channels = static_cast<std::size_t>(size.channels),
             height = static_cast<std::size_t>(size.height), width = static_cast<std::size_t>(size.width);
  std::vector<std::array<std::string, 2>> lines;
  std::int64_t wanted = 1;
  bool two = false;
  for (const std::string& caption : captions) {
    const auto& [first, second] = lines.emplace_back(lines_of(caption));
    wanted = std::max({wanted, text_width(first), text_width(second)});
    two = two || !second.empty();
  }
  const std::size_t scale = (kMinWidth + width - 1) / width;
  const std::int64_t widest = std::min(wanted, kWidestCaption);
  const std::size_t room = std::max(width * scale, static_cast<std::size_t>(widest + kSpace));
  columns = std::min(columns, count);
  const std::size_t rows = (count + columns - 1) / columns;
  const std::size_t cell_width = room + kGap,
                    cell_height = height * scale + (two ? 2 : 1) * kLineHeight + 2 * kGap;
  const tbwriter::ImageSize whole = {.height = static_cast<std::int64_t>(rows * cell_height + kGap),
                                     .width = static_cast<std::int64_t>(columns * cell_width + kGap),
                                     .channels = size.channels};
  const std::size_t pitch = (columns * cell_width + kGap) * channels;
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(whole.height) * pitch);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t left = kGap + i % columns * cell_width, top = kGap + i / columns * cell_height;
    const auto at = [&](std::size_t x, std::size_t y) { return (top + y) * pitch + (left + x) * channels; };
    for (std::size_t y = 0; y < height; ++y) {
      std::uint8_t* const row = &canvas[at(0, y * scale)];
      for (std::size_t c = 0; c < channels; ++c) {
        const std::uint8_t* const source = &pixels[((i * channels + c) * height + y) * width];
        std::uint8_t* to = row + c;
        for (std::size_t x = 0; x < width; ++x) {
          for (std::size_t copy = 0; copy < scale; ++copy, to += channels) *to = source[x];
        }
      }
      for (std::size_t copy = 1; copy < scale; ++copy)
        std::copy_n(row, width * scale * channels, &canvas[at(0, y * scale + copy)]);
    }
    for (std::size_t line = 0; line < 2; ++line) {
      const std::size_t below = height * scale + 2 + line * kLineHeight;
      const std::string text =
          cut_text(lines[i][line], std::max(widest, static_cast<std::int64_t>(width * scale)));
      tbwriter::draw_text(text, [&](std::int64_t x, std::int64_t y) {
        const std::size_t pixel = at(static_cast<std::size_t>(x), below + static_cast<std::size_t>(y));
        for (std::size_t c = 0; c < channels; ++c) canvas[pixel + c] = 255;
      });
    }
  }
  return tbwriter::encode_image(canvas, whole);
}

}  // namespace sweep
