// Splits text at a character.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace sweep {

/// The parts between the separators, one more than there are of these; parts may be empty. They refer to
/// `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

}  // namespace sweep
