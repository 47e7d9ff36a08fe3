// Splits a text into lines.
#pragma once

#include <string_view>
#include <vector>

namespace sweep {

/// The lines of `text` without their '\n', views into it. What follows the last '\n' is a line if it is not
/// empty. Throws std::bad_alloc if memory runs out; std::getline() would take that for the end of the text.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace sweep
