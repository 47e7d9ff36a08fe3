#include "tbwriter/utf8.h"

#include <cstddef>

namespace sweep::tbwriter {
namespace {

struct Sequence {
  std::size_t length;  // bytes, at least 1
  bool valid;
};

// The sequence at the start of `text`, which is not empty, by table 3-7 of the Unicode
// standard: only the range of the second byte depends on the first. An invalid sequence is as
// long as its valid beginning, at least 1.
Sequence next_sequence(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < wanted; ++i) {
    if (i >= text.size()) return {i, false};
    if (byte(i) < (i == 1 ? low : 0x80u) || byte(i) > (i == 1 ? high : 0xBFu)) return {i, false};
  }
  return {wanted, true};
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Sequence sequence = next_sequence(text);
    if (sequence.valid) {
      result += text.substr(0, sequence.length);
    } else {
      result += "\xEF\xBF\xBD";
    }
    text.remove_prefix(sequence.length);
  }
  return result;
}

}  // namespace sweep::tbwriter
