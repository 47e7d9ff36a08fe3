#include "runmanager/text/json_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/suggest.h"
#include "runmanager/text/json_syntax.h"

namespace sweep {
namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+' || c == '-' ||
         c == '$';
}

// Returns "LINE:COLUMN" of an offset. Only used in messages, so a walk from the start is fast enough.
std::string where(std::string_view text, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u) {
      ++column;
    }
  }
  return fmt::format("{}:{}", line, column);
}

JsonMistake explain_string(std::string_view text, std::size_t start) {
  const std::size_t end = end_of_json_string(text, start);
  if (end == text.size() || text[end] != '"')
    return {start, "the string that starts here has no closing quote on its line"};
  for (std::size_t i = start + 1; i < end; ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20) {
      return {i, fmt::format("a string holds the control character U+{:04X}, want \\u{:04x} instead",
                             static_cast<unsigned>(text[i]), static_cast<unsigned>(text[i]))};
    }
    if (text[i] == '\\') {
      if (std::string_view("\"\\/bfnrtu").find(text[i + 1]) == std::string_view::npos) {
        return {i,
                fmt::format("\\{} is no escape of JSON, allowed: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX",
                            text[i + 1])};
      }
      if (text[i + 1] == 'u')
        return {i, "this \\u escape does not name a character, want \\u and 4 hexadecimal digits"};
      ++i;
    }
  }
  return {start, "this string is not one of JSON"};
}

JsonMistake explain_word(std::string_view text, std::size_t start) {
  std::size_t end = start;
  while (end < text.size() && is_word_character(text[end])) ++end;
  const std::string word(text.substr(start, std::min<std::size_t>(end - start, 40)));
  const char first =
      word[0] == '-' || word[0] == '+' || word[0] == '.' ? (word.size() > 1 ? word[1] : word[0]) : word[0];
  if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') {
    return {start, fmt::format("{} is not a number of JSON, want one like 10, 0.01 or 1e-4", word)};
  }
  std::string lower;
  for (const char c : word) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.find("nan") != std::string::npos || lower.find("inf") != std::string::npos) {
    return {start, fmt::format("{} is not a number of JSON, want a finite one", word)};
  }
  const std::string literals[] = {"true", "false", "null"};
  const std::string nearest = lower == "none" ? "null" : nearest_name(word, literals);
  return {start,
          fmt::format("{} is not a value, want a string in double quotes, a number, true, false or null{}",
                      word, nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest))};
}

// Returns the character in quotes, or its number if it cannot be printed.
std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F ? fmt::format("'{}'", c) : fmt::format("the byte 0x{:02X}", byte);
}

std::string bracket_name(char c) { return c == '{' ? "object" : "list"; }

}  // namespace

std::size_t find_bad_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = byte(i);
    std::size_t length = 1;
    unsigned char low = 0x80, high = 0xBF;  // Range of the second byte; RFC 3629, section 4.
    if (first >= 0x80) {
      if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
      } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
      } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
      } else {
        return i;
      }
    }
    if (i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      const bool fits = k == 1 ? byte(i + k) >= low && byte(i + k) <= high : (byte(i + k) & 0xC0u) == 0x80u;
      if (!fits) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

JsonMistake explain_json_error(std::string_view text, std::size_t accepted, const OpenBrackets& open,
                               std::string_view reason) {
  if (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF") {
    return {0, "the file is UTF-16, want UTF-8"};
  }
  if (text.substr(0, 2) == "\x1F\x8B") return {0, "the file is compressed with gzip, want plain JSON"};
  if (const std::size_t bad = find_bad_utf8(text); bad != std::string_view::npos) {
    return {bad, fmt::format("the byte 0x{:02X} is not UTF-8", static_cast<unsigned char>(text[bad]))};
  }
  // After the last good token come blanks, perhaps a comma or colon, and then the mistake. The cases below go
  // from the specific to the general; each relies on those before it not having matched.
  std::size_t at = text.find_first_not_of(kJsonBlanks, accepted);
  std::size_t separator = std::string_view::npos;
  if (at != std::string_view::npos && (text[at] == ',' || text[at] == ':') && !open.empty()) {
    separator = at;
    at = text.find_first_not_of(kJsonBlanks, at + 1);
  }
  if (at == std::string_view::npos) {
    if (open.empty()) return {accepted, "the document ends too early"};
    return {text.size(), fmt::format("the file ends inside the {} that starts at {}, want a closing {}",
                                     bracket_name(text[open.back()]), where(text, open.back()),
                                     text[open.back()] == '{' ? '}' : ']')};
  }
  const char c = text[at];
  const char bracket = open.empty() ? '\0' : text[open.back()];
  if (c == '\0') return {at, "the file holds a NUL byte, want text"};
  if (c == '#') return {at, "comments begin with // or stand between /* and */"};
  if (text.substr(at, 2) == "/*") return {at, "the comment that starts here has no closing */"};
  if (c == '\'') return {at, "strings stand in double quotes (\"), not in single ones"};
  if (separator != std::string_view::npos && text[separator] == ',' && accepted > 0 &&
      (text[accepted - 1] == '{' || text[accepted - 1] == '[')) {
    return {separator, "a value is missing before this comma"};
  }
  if ((c == '}' || c == ']') && separator != std::string_view::npos && text[separator] == ',') {
    return {
        separator,
        fmt::format("the last entry of a list or object has no comma after it: remove this one before the {}",
                    c)};
  }
  if ((c == '}' || c == ']') && separator != std::string_view::npos)
    return {at, "a value is missing after the colon"};
  if (c == ',') return {at, "a value is missing before this comma"};
  if ((c == '}' && bracket == '[') || (c == ']' && bracket == '{')) {
    return {at, fmt::format("the {} that starts at {} is closed by {}, want {}", bracket_name(bracket),
                            where(text, open.back()), c, bracket == '{' ? '}' : ']')};
  }
  if (open.empty() && accepted > 0)
    return {at, fmt::format("the document has ended, but {} follows", shown(c))};
  // Two tokens in a row without a separator: a colon is missing after a key, a comma after a value. Only the
  // parser knows which; its message says so.
  const bool accepted_opens = accepted > 0 && (text[accepted - 1] == '{' || text[accepted - 1] == '[');
  if (!open.empty() && separator == std::string_view::npos && !accepted_opens) {
    if (reason.find("object separator") != std::string_view::npos) {
      return {at, fmt::format("a colon is missing between the key and its value, before {}", shown(c))};
    }
    if (c == '"' || c == '{' || c == '[' || is_word_character(c)) {
      return {at, "a comma is missing before this"};
    }
  }
  if (c == '"') return explain_string(text, at);
  const bool wants_key =
      bracket == '{' && (accepted_opens || (separator != std::string_view::npos && text[separator] == ','));
  if (wants_key) {
    return {at, fmt::format("a key in double quotes is missing before {}", shown(c))};
  }
  if (reason.find("out_of_range") != std::string_view::npos ||
      reason.find("number overflow") != std::string_view::npos) {
    std::size_t end = at;
    while (end < text.size() && is_word_character(text[end])) ++end;
    return {at, fmt::format("{} is too large for a number",
                            text.substr(at, std::min<std::size_t>(end - at, 40)))};
  }
  if (is_word_character(c)) return explain_word(text, at);
  return {at, fmt::format("{} cannot stand here, want a value", shown(c))};
}

}  // namespace sweep
