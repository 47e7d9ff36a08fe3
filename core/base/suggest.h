// "Did you mean": finds the valid name most similar to a wrong one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

/// Returns the candidate with the smallest edit distance (insert, delete, replace, swap of neighbours) to
/// `wrong`, ignoring case, or "" if none is similar enough. The first of equally near candidates wins.
std::string nearest_name(std::string_view wrong, std::span<const std::string> candidates);

}  // namespace sweep
