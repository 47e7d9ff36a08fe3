// What the terminal on stderr can show: width, colour, redrawing. Decides once, from the environment.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sweep {

/// A copyable description of the place where progress goes. Not thread-safe.
struct Terminal {
  bool interactive = false;                        // lines can be redrawn: a TTY that is not TERM=dumb
  bool color = false;                              // interactive, and NO_COLOR is not set
  bool unicode = true;                             // the locale names no other character set
  std::function<int()> width = [] { return 80; };  // columns, asked before each redraw
  std::function<void(std::string_view)> write = [](std::string_view) {};  // writes bytes at once

  /// The process's stderr, with NO_COLOR, TERM and the locale's variables honoured.
  static Terminal of_process();
};

/// Whether tables on stdout may use colour: a TTY, no NO_COLOR, no TERM=dumb.
bool stdout_color();

/// Columns of stdout; 0 if it is no TTY, where lines may be of any length.
int stdout_width();

/// Whether characters beyond ASCII can be shown: not if the locale names another character set.
bool stdout_unicode();

/// Columns that `text` (UTF-8) takes: wide characters count two, combining ones and escape sequences none.
int display_width(std::string_view text);

/// `text` cut to at most `columns`, with an ellipsis where something was left out. Escape sequences are kept
/// whole.
std::string fit_width(std::string_view text, int columns, bool unicode = true);

}  // namespace sweep
