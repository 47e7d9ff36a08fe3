// Text that TensorBoard can serve: it answers with an error for a whole run if one text is not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// Returns `text` with every byte that is no part of valid UTF-8 (overlong forms, surrogates and code points
/// above U+10FFFF included) replaced by U+FFFD, one per maximal part, as Unicode recommends and Python's
/// decoder does.
std::string valid_utf8(std::string_view text);

}  // namespace sweep::tbwriter
