// A grid of pictures with a caption below each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/shape.h"
#include "tbwriter/image.h"
#include "tbwriter/label_font.h"

namespace sweep {

/// Whether samples of this shape can be drawn: [1 or 3, height, width].
inline bool is_picture(const Shape& shape) { return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3); }

/// Calls set(x, y) for every pixel of `text`, letters of 6x8 pixels each enlarged `scale` times, from (0, 0)
/// to the right and downwards.
template <class Set>
void draw_text(std::string_view text, std::size_t scale, Set set) {
  std::size_t left = 0;
  for (const char32_t letter : tbwriter::letters_of(text)) {
    for (std::size_t y = 0; y < tbwriter::kLetterHeight * scale; ++y) {
      for (std::size_t x = 0; x < tbwriter::kLetterWidth * scale; ++x) {
        const auto column = static_cast<std::int64_t>(x / scale), row = static_cast<std::int64_t>(y / scale);
        if (tbwriter::letter_has_pixel(letter, column, row)) set(left + x, y);
      }
    }
    left += tbwriter::kLetterWidth * scale;
  }
}

/// Width in pixels of a text of draw_text() with scale 1.
std::size_t text_width(std::string_view text);

/// `text`, or if it is longer its beginning with "..", `letters` >= 3 in all.
std::string cut_text(std::string text, std::size_t letters);

/// Draws pictures, [count, channels, height, width] of 8 bits, white captions on black below them, `columns`
/// a row. Small pictures are enlarged by a whole number, so that the captions fit, up to 18 letters. Only
/// where a longer one has a line break, the break is made; else it is a space. Lines that are longer still
/// are cut. `captions`: one per picture. Throws UsageError for extents that tbwriter::encode_image() refuses.
tbwriter::EncodedImage draw_captioned_grid(std::span<const std::uint8_t> pixels, tbwriter::BatchSize size,
                                           std::span<const std::string> captions, std::size_t columns);

}  // namespace sweep
