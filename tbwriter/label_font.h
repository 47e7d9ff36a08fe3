// A bitmap font for the labels of boxes. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sweep::tbwriter {

/// Size in pixels of a letter's cell, which includes the gap to the next letter.
inline constexpr std::int64_t kLetterWidth = 6, kLetterHeight = 8;

/// The code points of `text`; all that are neither ASCII nor an arrow (U+2192), and invalid UTF-8, are
/// U+FFFD.
std::vector<char32_t> letters_of(std::string_view text);

/// Whether the pixel at column x and row y of a letter's cell is set. Characters that are neither printable
/// ASCII nor an arrow are drawn as a frame.
bool letter_has_pixel(char32_t letter, std::int64_t x, std::int64_t y);

}  // namespace sweep::tbwriter
