// Text of unknown origin on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sweep {

/// Returns `text` with everything escaped that a terminal would interpret rather than display, or that
/// changes the order of what it shows: control characters (C0 except line break and tab, DEL and C1), marks
/// of writing direction, other line breaks and characters without a width as \u202e, and bytes that are not
/// UTF-8 as \x9b. JSON stays the same JSON. Thread-safe.
std::string printable(std::string_view text);

/// The same on one line: line breaks and tabs are escaped also. For names of files, which may have them.
std::string printable_line(std::string_view text);

/// `text` for a message: with ASCII control characters escaped, as \u000a, and cut after `most` bytes or up
/// to three more, as it is never cut inside a character. Thread-safe.
std::string shown_text(std::string_view text, std::size_t most);

}  // namespace sweep
