#include "core/base/printable.h"

#include <cstdint>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

bool is_shown(char32_t code) {
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
    const Utf8Character character = first_utf8_character(text);
    if (!character.is_valid) {
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
  return substituted(printable(text), {{'\n', "\\n"}, {'\t', "\\t"}});
}

std::string shown_text(std::string_view text, std::size_t most) {
  constexpr std::size_t kMaxTrailing = 3;  // bytes of a character after its first
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_inside = (byte & 0xC0u) == 0x80u && i < most + kMaxTrailing;
    if (i >= most && !is_inside) return shown + "…";
    if (byte < 0x20 || byte == 0x7F) {
      shown += "\\u";
      append_hexadecimal(shown, byte, 4);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace sweep
