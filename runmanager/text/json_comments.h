// Comments and trailing commas, which people write into JSON files by hand.
#pragma once

#include <string>
#include <string_view>

namespace sweep {

/// `text` with blanks in place of comments (// to the end of the line, /* to */) and of commas before a
/// closing bracket, so that every other byte keeps its offset, line and column (that of a byte behind a
/// comment of other letters than ASCII's is counted in bytes). Strings are left alone, as is a /* without an
/// end, and a comma that has no value before it.
std::string without_comments(std::string_view text);

}  // namespace sweep
