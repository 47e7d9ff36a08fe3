#include "runmanager/text/json_comments.h"

#include <algorithm>

#include "runmanager/text/json_syntax.h"

namespace sweep {
namespace {

// The offset behind the comment that starts at `start`; `start` if there is none.
std::size_t end_of_comment(std::string_view text, std::size_t start) {
  if (text.substr(start, 2) == "//") return std::min(text.find('\n', start), text.size());
  if (text.substr(start, 2) != "/*") return start;
  const std::size_t end = text.find("*/", start + 2);
  return end == std::string_view::npos ? start : end + 2;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string plain(text);
  // The last two characters outside of blanks and comments, and where the last one is.
  char before_last = '\0', last = '\0';
  std::size_t last_at = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = end_of_comment(text, i); end != i) {
      std::replace_if(
          plain.begin() + static_cast<std::ptrdiff_t>(i), plain.begin() + static_cast<std::ptrdiff_t>(end),
          [](char c) { return c != '\n' && c != '\r'; }, ' ');
      i = end;
      continue;
    }
    const char c = text[i];
    const bool closes = c == ']' || c == '}';
    const bool has_value =
        before_last != '\0' && std::string_view("[{,:").find(before_last) == std::string_view::npos;
    if (closes && last == ',' && has_value) {
      plain[last_at] = ' ';
      last = before_last;
    }
    if (kJsonBlanks.find(c) == std::string_view::npos) {
      before_last = last;
      last = c;
      last_at = i;
    }
    i = c == '"' ? std::min(end_of_json_string(text, i) + 1, text.size()) : i + 1;
  }
  return plain;
}

}  // namespace sweep
