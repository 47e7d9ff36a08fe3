#include "core/base/utf8.h"

#include <cstdint>

namespace sweep {

// By table 3-7 of the Unicode standard: only the range of the second byte depends on the first.
Utf8Character first_utf8_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[i])}; };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {1, first, true};
  if (first < 0xC2 || first > 0xF4) return {};
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const std::uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const std::uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  std::uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i >= text.size() || byte(i) < (i == 1 ? low : 0x80u) || byte(i) > (i == 1 ? high : 0xBFu))
      return {i, 0, false};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {bytes, code, true};
}

std::size_t find_bad_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    if (!character.is_valid) return at;
    at += character.bytes;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    valid += character.is_valid ? text.substr(0, character.bytes) : "\xEF\xBF\xBD";
    text.remove_prefix(character.bytes);
  }
  return valid;
}

void append_utf8(char32_t code, std::string& out) {
  constexpr std::uint32_t kFirstBits[] = {0, 0xC0, 0xE0, 0xF0};
  const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>(kFirstBits[more] | code >> (6 * more));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80u | (code >> (6 * i) & 0x3Fu));
}

}  // namespace sweep
