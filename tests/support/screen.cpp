#include "tests/support/screen.h"

namespace sweep::testing {

Terminal Screen::terminal(bool color) {
  Terminal terminal;
  terminal.interactive = true;
  terminal.color = color;
  terminal.width = [this] { return width_; };
  terminal.height = [this] { return height_; };
  terminal.write = [this](std::string_view text) { write(text); };
  return terminal;
}

std::size_t Screen::top() const {
  const auto height = static_cast<std::size_t>(height_);
  return rows_.size() > height ? rows_.size() - height : 0;
}

void Screen::write(std::string_view written) {
  ++writes;
  const std::string whole = std::exchange(rest_, {}) + std::string(written);
  std::string_view text = whole;
  while (!text.empty()) {
    if (text[0] == '\x1b') {
      const std::size_t end = text.find_first_not_of("?;0123456789", 2);
      if (text.size() < 3 || end == std::string_view::npos) break;
      obey(text.substr(0, end + 1));
      text.remove_prefix(end + 1);
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (text.size() < length) break;
    if (byte == '\r') {
      column_ = 0;
    } else if (byte == '\b') {
      column_ -= column_ > 0;
    } else if (byte == '\n') {
      new_line();
      column_ = 0;
    } else {
      put(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  rest_ = text;
}

void Screen::obey(std::string_view sequence) {
  const char command = sequence.back();
  const std::string parameters(sequence.substr(2, sequence.size() - 3));
  Row& row = rows_[row_];
  if (command == 'A') {
    const auto up = static_cast<std::size_t>(std::max(1, std::atoi(parameters.c_str())));
    row_ = row_ >= top() + up ? row_ - up : top();
  } else if ((command == 'K' || command == 'J') && parameters.empty()) {
    if (row.cells.size() > column_) row.cells.resize(column_);
    row.wraps = false;
    if (command == 'J') rows_.resize(row_ + 1);
  } else if (parameters == "?2026") {
    unfinished_updates += command == 'h' ? 1 : -1;
  } else if (command != 'm') {
    unknown.emplace_back(sequence);
  }
}

void Screen::put(std::string_view character) {
  if (column_ == static_cast<std::size_t>(width_)) {
    rows_[row_].wraps = true;
    new_line();
    column_ = 0;
  }
  std::vector<std::string>& cells = rows_[row_].cells;
  if (cells.size() <= column_) cells.resize(column_ + 1, " ");
  cells[column_++] = character;
}

void Screen::new_line() {
  if (++row_ == rows_.size()) rows_.emplace_back();
}

void Screen::resize(int width, int height) {
  width_ = width;
  height_ = height;
  // Where the cursor is in its unwrapped line.
  std::vector<Row> unwrapped(1);
  std::size_t cursor_line = 0, cursor_column = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::vector<std::string>& cells = unwrapped.back().cells;
    if (i == row_) {
      cursor_line = unwrapped.size() - 1;
      cursor_column = cells.size() + column_;
    }
    cells.insert(cells.end(), rows_[i].cells.begin(), rows_[i].cells.end());
    if (!rows_[i].wraps && i + 1 < rows_.size()) unwrapped.emplace_back();
  }
  const auto columns = static_cast<std::size_t>(width);
  rows_.clear();
  for (std::size_t i = 0; i < unwrapped.size(); ++i) {
    const std::vector<std::string>& cells = unwrapped[i].cells;
    const std::size_t first = rows_.size();
    for (std::size_t at = 0; at == 0 || at < cells.size(); at += columns) {
      const std::size_t end = std::min(cells.size(), at + columns);
      rows_.push_back({{cells.begin() + static_cast<std::ptrdiff_t>(at),
                        cells.begin() + static_cast<std::ptrdiff_t>(end)},
                       end < cells.size()});
    }
    if (i == cursor_line) {
      row_ = std::min(first + cursor_column / columns, rows_.size() - 1);
      column_ = cursor_column % columns;
    }
  }
}

std::vector<std::string> Screen::lines() const {
  std::vector<std::string> lines;
  for (const Row& row : rows_) {
    std::string line;
    for (const std::string& cell : row.cells) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::string Screen::text() const {
  std::string text;
  for (const std::string& line : lines()) text += line + "\n";
  return text;
}

}  // namespace sweep::testing
