// Letters for the labels of boxes. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sweep::tbwriter {

/// Every letter stands in a cell of this size, in pixels, its gap to the next one included.
inline constexpr std::int64_t kLetterWidth = 6, kLetterHeight = 8;

/// Code points of `text` to draw. What is not UTF-8 is one that has no letter.
std::vector<char32_t> letters_of(std::string_view text);

/// Whether the pixel at column x and row y of a letter's cell is set. Other characters than ASCII's are a
/// frame.
bool letter_has_pixel(char32_t letter, std::int64_t x, std::int64_t y);

}  // namespace sweep::tbwriter
