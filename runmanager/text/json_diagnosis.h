// Explains why a text is not JSON to the person who wrote it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// A mistake in JSON syntax.
struct JsonMistake {
  std::size_t offset = 0;  // in bytes: where to look
  std::string message;     // "a comma is missing before this value"
};

/// Offsets of the '{' and '[' that are not closed yet, outermost first.
using OpenBrackets = std::vector<std::size_t>;

/// Explains why `text` cannot be read further than `accepted`, the end of the last good token. `reason` is
/// what the parser said; it is the fallback.
JsonMistake explain_json_error(std::string_view text, std::size_t accepted, const OpenBrackets& open,
                               std::string_view reason);

/// Offset of the first byte that does not belong to well-formed UTF-8 (RFC 3629), or npos.
std::size_t find_bad_utf8(std::string_view text);

}  // namespace sweep
