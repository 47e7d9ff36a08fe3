// The letters of labels in pictures: those of GNU Unifont, which the build puts into the library. Not part of
// the installed interface.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sweep::tbwriter {

/// Height in pixels of every letter.
inline constexpr std::int64_t kLetterHeight = 16;

struct Letter {
  std::array<std::uint16_t, kLetterHeight> rows{};  // the leftmost pixel is the highest bit
  std::int64_t width = 0;  // 8 or 16 pixels, with the gap to the next letter; 0: a mark on the letter before
};

/// The letters of `text`. What Unifont does not have, and invalid UTF-8, is the sign U+FFFD.
std::vector<Letter> letters_of(std::string_view text);

/// Width in pixels of a text of draw_text().
std::int64_t text_width(std::string_view text);

/// Calls set(x, y) for every pixel of `text`, from (0, 0) to the right and downwards.
template <class Set>
void draw_text(std::string_view text, Set set) {
  constexpr std::int64_t kMarkWidth = 8;
  std::int64_t right = 0;
  for (const Letter& letter : letters_of(text)) {
    const bool is_mark = letter.width == 0;
    const std::int64_t left = is_mark ? right - kMarkWidth : right;
    for (std::int64_t y = 0; y < kLetterHeight; ++y) {
      for (std::int64_t x = 0; x < (is_mark ? kMarkWidth : letter.width); ++x) {
        if ((letter.rows[static_cast<std::size_t>(y)] << x & 0x8000) != 0) set(left + x, y);
      }
    }
    right += letter.width;
  }
}

}  // namespace sweep::tbwriter
