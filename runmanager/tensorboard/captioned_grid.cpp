#include "runmanager/tensorboard/captioned_grid.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tbwriter/canvas.h"

namespace sweep {
namespace {

using tbwriter::text_width;

constexpr std::int64_t kWidestCaption = 144;
constexpr std::int64_t kSpace = 8;      // after a caption, so that it does not run into the next
constexpr std::int64_t kMinWidth = 64;  // of a picture; smaller ones are enlarged
constexpr std::int64_t kGap = 4;        // pixels around pictures and captions
constexpr std::int64_t kLineHeight = tbwriter::kLetterHeight + 1;

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
  std::vector<std::array<std::string, 2>> lines;
  std::int64_t wanted = 1;
  bool two = false;
  for (const std::string& caption : captions) {
    const auto& [first, second] = lines.emplace_back(lines_of(caption));
    wanted = std::max({wanted, text_width(first), text_width(second)});
    two = two || !second.empty();
  }
  const std::int64_t scale = (kMinWidth + size.width - 1) / size.width;
  const std::int64_t height = size.height * scale, width = size.width * scale;
  const std::int64_t widest = std::min(wanted, kWidestCaption);
  const std::int64_t cell_width = std::max(width, widest + kSpace) + kGap;
  const std::int64_t cell_height = height + (two ? 2 : 1) * kLineHeight + 2 * kGap;
  const std::int64_t per_row = std::min(static_cast<std::int64_t>(columns), size.count);
  const std::int64_t rows = (size.count + per_row - 1) / per_row;
  tbwriter::Canvas canvas(
      {.height = rows * cell_height + kGap, .width = per_row * cell_width + kGap, .channels = size.channels});
  for (std::int64_t i = 0; i < size.count; ++i) {
    const std::int64_t left = kGap + i % per_row * cell_width, top = kGap + i / per_row * cell_height;
    canvas.put(pixels, size, i, left, top, scale);
    std::int64_t below = top + height + 2;
    for (const std::string& line : lines[static_cast<std::size_t>(i)]) {
      canvas.write(cut_text(line, std::max(widest, width)), left, below, {255, 255, 255});
      below += kLineHeight;
    }
  }
  return tbwriter::encode_image(canvas.pixels, canvas.size);
}

}  // namespace sweep
