// Whether text is UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace sweep {

/// Offset of the first byte that does not belong to well-formed UTF-8 (RFC 3629), or npos.
std::size_t find_bad_utf8(std::string_view text);

}  // namespace sweep
