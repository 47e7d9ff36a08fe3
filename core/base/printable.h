// Text of unknown origin on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sweep {

/// Returns `text` with everything escaped that a terminal would interpret rather than display, or that
/// changes the order of what it shows: control characters (C0 except line break and tab, DEL and C1), marks
/// of writing direction and of other line breaks as \u202e, and bytes that are not UTF-8 as \x9b. JSON stays
/// the same JSON. Thread-safe.
std::string printable(std::string_view text);

}  // namespace sweep
