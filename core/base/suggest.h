// What messages suggest: the valid name most similar to a wrong one, and commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

/// Returns the candidate with the smallest edit distance (insert, delete, replace, swap of neighbours) to
/// `wrong`, ignoring case, or "" if none is similar enough. One that begins with `wrong`, if that has three
/// letters or more, counts as one edit; one that `wrong` begins with as at most two. The first of equally
/// near candidates wins.
std::string nearest_name(std::string_view wrong, std::span<const std::string> candidates);

/// ", did you mean "NEAREST"?", which `before` begins; "" if `nearest` is "".
std::string did_you_mean(std::string_view nearest, std::string_view before = ", did");

/// What was typed to start this program. Scripts that start it for somebody, such as tools/run, put
/// themselves into the variable SWEEP_TYPED_AS.
std::string typed_program(const std::string& own_name = "sweep");

}  // namespace sweep
