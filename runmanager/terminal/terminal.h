// What a terminal can show (width, colours, redrawing), how wide text is on it, and lines that are redrawn.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sweep {

/// The output for progress, and what can be shown there. Copyable; not thread-safe.
struct Terminal {
  bool interactive = false;                         // lines can be redrawn: a TTY that is not TERM=dumb
  bool color = false;                               // interactive, and NO_COLOR is not set
  bool unicode = true;                              // characters beyond ASCII can be shown
  bool reflows = true;                              // wraps what it shows anew when its width changes
  std::function<int()> width = [] { return 80; };   // columns; called before each redraw
  std::function<int()> height = [] { return 24; };  // lines; likewise
  std::function<void(std::string_view)> write = [](std::string_view) {};  // unbuffered

  /// The process's stderr. Reads NO_COLOR, TERM and the locale's variables (LC_ALL, LC_CTYPE, LANG).
  static Terminal of_process();
  /// The same for stdout.
  static Terminal of_output();
};

/// Parameters of the escape sequence SGR, "ESC [ n m" (ECMA-48).
inline constexpr std::string_view kBold = "1", kDim = "2", kRed = "31", kGreen = "32", kYellow = "33",
                                  kCyan = "36";

/// `text` in a colour if the terminal has colours.
std::string painted(const Terminal& terminal, std::string_view code, std::string_view text);

/// Whether tables on stdout may use colour: a TTY, no NO_COLOR, no TERM=dumb.
bool stdout_color();

/// Columns of stdout; 0 if it is not a TTY, where lines may have any length.
int stdout_width();

/// Whether characters beyond ASCII can be shown on stdout: the locale does not name another encoding.
bool stdout_unicode();

/// The number of columns that `text` (UTF-8) takes: two for wide characters, none for combining ones and
/// escape sequences.
int display_width(std::string_view text);

/// `text` with blanks to the right, or to the left if `right_aligned`, up to `columns`; wider text as it is.
std::string padded(std::string_view text, int columns, bool right_aligned = false);

/// A line to rule off the header of a table, `columns` long.
std::string rule(int columns, bool unicode);

/// `text` cut to at most `columns`, with an ellipsis ("…", or "~" without `unicode`) if something was left
/// out. All escape sequences are kept, also those after the cut.
std::string fit_width(std::string_view text, int columns, bool unicode = true);

/// The same, but cut at its beginning: "…networks/a.json".
std::string fit_end(std::string_view text, int columns, bool unicode = true);

/// `text` with lines of at most `columns`, broken at blanks, if there are any; 0: as it is. What follows a
/// break begins below the line's second column, as in help, or else below the line's first word.
std::string wrapped(std::string_view text, int columns);

/// The lines at the bottom of a terminal that are drawn again and again, while others scroll away above them.
/// Draws by one write each time, which terminals that can do so show at once. The terminal may change its
/// size between two draws. Not thread-safe.
class LiveRegion {
 public:
  explicit LiveRegion(Terminal terminal) : terminal_(std::move(terminal)) {}
  ~LiveRegion() { clear(); }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;

  /// Shows `lines` in place of those of the last time, and `above`, whole lines with their ends, as text that
  /// stays above them. Lines wider than the terminal are cut.
  void draw(std::vector<std::string> lines, std::string_view above = "");
  /// Draws the same lines again, below `above`.
  void write_above(std::string_view above);
  /// Erases the lines.
  void clear();

 private:
  std::string to_first_line(int width) const;

  Terminal terminal_;
  std::vector<std::string> drawn_;  // the cursor is at the start of the last of them
  int drawn_width_ = 0;             // of the terminal then
};

}  // namespace sweep
