// The lines at the bottom of a terminal that are drawn again and again, while others scroll away above them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runmanager/terminal/terminal.h"

namespace sweep {

/// Draws by one write each time, which terminals that can do so show at once. The terminal may change its
/// size between two draws. Not thread-safe.
class LiveRegion {
 public:
  explicit LiveRegion(Terminal terminal) : terminal_(std::move(terminal)) {}
  ~LiveRegion() { clear(); }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;

  const Terminal& terminal() const { return terminal_; }
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
