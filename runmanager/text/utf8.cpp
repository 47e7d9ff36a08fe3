#include "runmanager/text/utf8.h"

namespace sweep {

std::size_t find_bad_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    if (first < 0xC2 || first > 0xF4) return i;
    const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (i + length > text.size()) return i;
    // The range of the second byte is smaller after some first ones; RFC 3629, section 4.
    const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(i + 1) < low || byte(i + 1) > high) return i;
    for (std::size_t k = 2; k < length; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80u) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace sweep
