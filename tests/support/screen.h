// A terminal for tests: what a program has written looks as it would look there.
#pragma once

#include "runmanager/terminal/terminal.h"
#include "tests/support/test.h"

namespace sweep::testing {

/// Interprets line breaks, "\r", backspace and the escape sequences A (up), J and K (erase to the end), m
/// (colours, without effect) and DEC's private modes; any other is counted as unknown. Lines that are too
/// long wrap, and are wrapped anew when the width changes, as in tmux and most terminals. Every character
/// takes one column. Not thread-safe.
class Screen {
 public:
  Screen(int width, int height = 24) : width_(width), height_(height) { rows_.emplace_back(); }

  /// A terminal that writes here. Refers to this object.
  Terminal terminal(bool color = true);
  /// `written` may end anywhere, also within a character.
  void write(std::string_view written);
  void resize(int width, int height);

  /// Every line that has been shown, those that have scrolled away included. Wrapped ones are several.
  std::vector<std::string> lines() const;
  /// The same, each with a line break.
  std::string text() const;

  std::size_t writes = 0;                 // calls of write()
  std::vector<std::string> unknown = {};  // sequences that were not understood
  std::size_t unfinished_updates = 0;     // of synchronized output

 private:
  struct Row {
    std::vector<std::string> cells = {};  // a character each
    bool wraps = false;                   // goes on in the next row
  };

  std::size_t top() const;  // the first row on the screen
  void put(std::string_view character);
  void obey(std::string_view sequence);
  void new_line();

  int width_, height_;
  std::string rest_;  // the beginning of a character or a sequence
  std::vector<Row> rows_;
  std::size_t row_ = 0, column_ = 0;
};

}  // namespace sweep::testing
