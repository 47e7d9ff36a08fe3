// UTF-8: decoding, checking and writing it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sweep {

struct Utf8Character {
  std::size_t bytes = 1;  // that it takes; of a malformed sequence its well-formed beginning, at least 1
  char32_t code = 0;
  bool is_valid = false;  // false: malformed; also an overlong form, a surrogate, or above U+10FFFF
};

/// Decodes the character at the start of `text`, which must not be empty (RFC 3629). Thread-safe, as all
/// functions here.
Utf8Character first_utf8_character(std::string_view text);

/// Returns the offset of the first malformed sequence, or npos.
std::size_t find_bad_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) { return find_bad_utf8(text) == std::string_view::npos; }

/// Returns `text` with malformed sequences replaced by U+FFFD, one per maximal subpart, as Unicode recommends
/// and Python's decoder does.
std::string valid_utf8(std::string_view text);

/// Appends the character `code`, up to U+10FFFF.
void append_utf8(char32_t code, std::string& out);

}  // namespace sweep
