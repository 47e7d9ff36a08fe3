#include "runmanager/terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A variable NO_COLOR that is not empty switches colours off: https://no-color.org.
bool color_wanted() { return environment("NO_COLOR").empty() && environment("TERM") != "dumb"; }

// The first of these variables that is set decides, as in POSIX. Without any, as in most containers, nothing
// is known about the terminal, and nearly all show UTF-8.
bool shows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    for (const char* utf8 : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (value.find(utf8) != std::string_view::npos) return true;
    }
    return false;
  }
  return true;
}

int positive_variable(const char* name, int otherwise) {
  const int value = std::atoi(std::string(environment(name)).c_str());
  return value > 0 ? value : otherwise;
}

winsize size_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

int columns_of(int fd) {
  const winsize size = size_of(fd);
  return size.ws_col > 0 ? size.ws_col : positive_variable("COLUMNS", 80);
}

int lines_of(int fd) {
  const winsize size = size_of(fd);
  return size.ws_row > 0 ? size.ws_row : positive_variable("LINES", 24);
}

// Open MPI gives each rank a terminal, also if its own output is a file; then the terminal has no size.
bool is_terminal(int fd) {
  return ::isatty(fd) != 0 && (environment("OMPI_COMM_WORLD_SIZE").empty() || size_of(fd).ws_col > 0);
}

// Nearly all do. xterm cuts lines when it gets narrower, and so do the console of Linux and GNU screen.
bool reflows() {
  const bool in_tmux = !environment("TMUX").empty();
  return in_tmux || (environment("XTERM_VERSION").empty() && environment("STY").empty() &&
                     environment("TERM") != "linux");
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // A closed terminal must not end the training.
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Range {
  std::uint32_t first, last;
};

// The blocks of Unicode's EastAsianWidth.txt (W and F) that are likely in names, emoji included.
constexpr std::array<Range, 13> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x33ff},
                                          {0x3400, 0x4dbf},
                                          {0x4e00, 0x9fff},
                                          {0xa000, 0xa4cf},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1faff},
                                          {0x20000, 0x3fffd}}};
// Combining marks, joiners and variation selectors: they take no column.
constexpr std::array<Range, 6> kZero = {{{0x0300, 0x036f},
                                         {0x200b, 0x200f},
                                         {0x20d0, 0x20ff},
                                         {0xfe00, 0xfe0f},
                                         {0xfe20, 0xfe2f},
                                         {0xfeff, 0xfeff}}};

template <std::size_t N>
bool in_any(const std::array<Range, N>& ranges, std::uint32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

struct Glyph {
  std::size_t bytes = 1;
  int width = 0;  // columns
};

// The character or the escape sequence (CSI: "ESC [", parameters, a final byte from @ to ~) that `text`
// begins with. A byte that is not UTF-8 takes one column.
Glyph first_glyph(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte == 0x1b && text.size() > 1 && text[1] == '[') {
    std::size_t end = 2;
    while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    return {end < text.size() ? end + 1 : end, 0};
  }
  const Utf8Character character = first_utf8_character(text);
  if (!character.is_valid) return {1, 1};
  if (byte < 0x20 || byte == 0x7f || in_any(kZero, character.code)) return {character.bytes, 0};
  return {character.bytes, in_any(kWide, character.code) ? 2 : 1};
}

Terminal terminal_of(int fd) {
  Terminal terminal;
  terminal.interactive = is_terminal(fd) && environment("TERM") != "dumb" && !environment("TERM").empty();
  terminal.color = terminal.interactive && color_wanted();
  terminal.unicode = shows_unicode();
  terminal.reflows = reflows();
  terminal.width = [fd] { return columns_of(fd); };
  terminal.height = [fd] { return lines_of(fd); };
  terminal.write = [fd](std::string_view text) { write_all(fd, text); };
  return terminal;
}

// Between these a terminal that knows them (DEC private mode 2026, "synchronized output") shows nothing;
// others ignore them.
constexpr std::string_view kBeginUpdate = "\x1b[?2026h", kEndUpdate = "\x1b[?2026l";
constexpr std::string_view kEraseRestOfLine = "\x1b[K", kEraseBelow = "\x1b[J";

}  // namespace

Terminal Terminal::of_process() { return terminal_of(STDERR_FILENO); }

Terminal Terminal::of_output() { return terminal_of(STDOUT_FILENO); }

std::string painted(const Terminal& terminal, std::string_view code, std::string_view text) {
  if (!terminal.color || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

bool stdout_color() { return is_terminal(STDOUT_FILENO) && color_wanted(); }

int stdout_width() { return is_terminal(STDOUT_FILENO) ? columns_of(STDOUT_FILENO) : 0; }

bool stdout_unicode() { return shows_unicode(); }

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    width += glyph.width;
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string padded(std::string_view text, int columns, bool right_aligned) {
  const std::string blanks(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ');
  return right_aligned ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string rule(int columns, bool unicode) {
  std::string line;
  for (int i = 0; i < columns; ++i) line += unicode ? "─" : "-";
  return line;
}

std::string fit_width(std::string_view text, int columns, bool unicode) {
  if (display_width(text) <= columns) return std::string(text);
  const std::string_view ellipsis = unicode ? "…" : "~";
  std::string fitted;
  bool cut = false;
  for (int used = 0; !text.empty();) {
    const Glyph glyph = first_glyph(text);
    if (!cut && used + glyph.width > columns - 1) {
      cut = true;
      if (columns >= 1) fitted += ellipsis;
    }
    // Escape sequences after the cut are kept, since they switch colours off.
    if (!cut || glyph.width == 0) fitted += text.substr(0, glyph.bytes);
    used += glyph.width;
    text.remove_prefix(glyph.bytes);
  }
  return fitted;
}

std::string fit_end(std::string_view text, int columns, bool unicode) {
  int width = display_width(text);
  if (width <= columns) return std::string(text);
  while (width > columns - 1) {
    const Glyph glyph = first_glyph(text);
    width -= glyph.width;
    text.remove_prefix(glyph.bytes);
  }
  return (unicode ? "…" : "~") + std::string(text);
}

std::string wrapped(std::string_view text, int columns) {
  if (columns == 0) return std::string(text);
  std::string lines;
  for (const std::string_view whole : split(text, '\n')) {
    std::string line(whole);
    std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (const std::size_t gap = line.find("  ", indent); gap != std::string::npos)
      indent = std::min(line.find_first_not_of(' ', gap), line.size());
    while (display_width(line) > columns) {
      std::size_t end = std::string::npos;
      for (std::size_t blank = line.find(' ', indent);
           blank != std::string::npos && display_width(std::string_view(line).substr(0, blank)) <= columns;
           blank = line.find(' ', blank + 1))
        end = blank;
      if (end == std::string::npos) break;
      lines += line.substr(0, end) + '\n';
      line = std::string(indent, ' ') + line.substr(end + 1);
    }
    lines += line + '\n';
  }
  lines.pop_back();
  return lines;
}

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
