// What those who read JSON with mistakes in it need to know of its syntax.
#pragma once

#include <cstddef>
#include <string_view>

namespace sweep {

inline constexpr std::string_view kJsonBlanks = " \t\r\n";

/// Offset of the quote that ends the string at `start`; of the line's end, which may be the text's, if it has
/// none on its line.
constexpr std::size_t end_of_json_string(std::string_view text, std::size_t start) {
  std::size_t i = start + 1;
  while (i < text.size() && text[i] != '\n' && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i < text.size() ? i : text.size();
}

}  // namespace sweep
