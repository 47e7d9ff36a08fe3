// Makes text valid UTF-8: TensorBoard fails for a whole run if one text is not.
#pragma once

#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// Returns `text` with invalid sequences (also overlong forms, surrogates and code points above U+10FFFF)
/// replaced by U+FFFD, one per maximal subpart, as Unicode recommends and Python's decoder does. Thread-safe.
std::string valid_utf8(std::string_view text);

}  // namespace sweep::tbwriter
