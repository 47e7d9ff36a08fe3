#include "core/base/printable.h"

#include <cstddef>
#include <cstdint>

namespace sweep {
namespace {

// A character at the start of a text. `bytes`: 0 if the text does not begin with valid UTF-8.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xf5 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || length > text.size()) return {};
  std::uint32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[length] || code > 0x10ffff || is_surrogate) return {};
  return {length, code};
}

bool is_shown(std::uint32_t code) {
  if (code == '\n' || code == '\t') return true;
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
  // Marks, embeddings, overrides and isolates of direction (Unicode UAX #9); line and paragraph separators;
  // spaces, joiners and hyphens without a width, with which two names can look the same.
  const bool has_direction = code == 0x061c || (code >= 0x2028 && code <= 0x202e);
  const bool has_no_width = code == 0x00ad || code == 0xfeff || (code >= 0x200b && code <= 0x200f) ||
                            (code >= 0x2060 && code <= 0x206f);
  return !has_direction && !has_no_width;
}

void append_hexadecimal(std::string& out, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[(value >> shift) & 15u];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0) {
      out += "\\x";
      append_hexadecimal(out, static_cast<unsigned char>(text[0]), 2);
      text.remove_prefix(1);
      continue;
    }
    if (is_shown(character.code)) {
      out += text.substr(0, character.bytes);
    } else {
      out += "\\u";  // All of these have four digits.
      append_hexadecimal(out, character.code, 4);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string line;
  for (const char c : printable(text)) line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  return line;
}

}  // namespace sweep
