// Numbers, words and lines as texts.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sweep {

/// The number that the whole of `text` is; nullopt if it is not one, or out of range.
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "1 run", "0 runs", "2 runs" for "run".
inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// `text` with its ASCII letters in lower case.
inline std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// `text` with each character that is in `table` replaced by what that has for it.
inline std::string substituted(std::string_view text,
                               std::initializer_list<std::pair<char, std::string_view>> table) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto* const found = std::ranges::find(table, c, &std::pair<char, std::string_view>::first);
    result += found == table.end() ? std::string_view(&c, 1) : found->second;
  }
  return result;
}

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

/// The lines of `text` without their '\n', views into it. What follows the last '\n' is a line if it is not
/// empty. Throws std::bad_alloc if memory runs out; std::getline() would take that for the end of the text.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace sweep
