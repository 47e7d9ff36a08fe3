#include "runmanager/terminal/live_region.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sweep {
namespace {

// Between these a terminal that knows them (DEC private mode 2026, "synchronized output") shows nothing;
// others ignore them.
constexpr std::string_view kBeginUpdate = "\x1b[?2026h", kEndUpdate = "\x1b[?2026l";
constexpr std::string_view kEraseRestOfLine = "\x1b[K", kEraseBelow = "\x1b[J";

}  // namespace

// Moves the cursor to where the first line begins. A terminal that has become narrower has wrapped lines that
// were drawn for its old width, if it does so at all; the line of the cursor is wrapped below it.
std::string LiveRegion::to_first_line(int width) const {
  if (drawn_.empty()) return "";
  std::size_t rows = drawn_.size() - 1;
  if (terminal_.reflows && width < drawn_width_) {
    for (std::size_t i = 0; i + 1 < drawn_.size(); ++i)
      rows += static_cast<std::size_t>(std::max(0, display_width(drawn_[i]) - 1) / width);
  }
  return rows > 0 ? fmt::format("\r\x1b[{}A", rows) : "\r";
}

void LiveRegion::draw(std::vector<std::string> lines, std::string_view above) {
  const int width = std::max(2, terminal_.width());
  // The last column would wrap on some terminals.
  for (std::string& line : lines) line = fit_width(line, width - 1, terminal_.unicode);
  if (above.empty() && lines == drawn_ && width == drawn_width_) return;
  std::string text(kBeginUpdate);
  text += to_first_line(width);
  // Lines are drawn over the old ones, so that nothing flickers even if updates are shown in between.
  // Wrapped remains of old ones are erased first.
  if (width != drawn_width_ || !above.empty()) text += kEraseBelow;
  text += above;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += i == 0 ? "" : "\n";
    text += lines[i];
    text += kEraseRestOfLine;
  }
  text += "\r";
  if (lines.size() < drawn_.size()) {
    // Old lines are left below, and the rest of this one, which is empty if there are no new ones.
    text += lines.empty() ? std::string(kEraseBelow) : fmt::format("\n{}\x1b[1A", kEraseBelow);
  }
  text += kEndUpdate;
  terminal_.write(text);
  drawn_ = std::move(lines);
  drawn_width_ = width;
}

void LiveRegion::write_above(std::string_view above) { draw(drawn_, above); }

void LiveRegion::clear() {
  if (!drawn_.empty()) draw({});
}

}  // namespace sweep
