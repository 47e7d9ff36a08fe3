// The built program on a terminal of its own, and what it shows there.
#pragma once

#include <sys/types.h>

#include "tests/support/screen.h"

namespace sweep::testing {

/// A program whose standard streams are a pseudo-terminal. The destructor kills it. Not thread-safe.
class ProgramOnScreen {
 public:
  /// Starts `program WORDS…` in `directory`, with TERM=xterm-256color and a UTF-8 locale. A program that
  /// cannot be started fails the test.
  ProgramOnScreen(const std::string& program, const std::vector<std::string>& words,
                  const std::filesystem::path& directory, int width, int height = 24);
  ~ProgramOnScreen();
  ProgramOnScreen(const ProgramOnScreen&) = delete;
  ProgramOnScreen& operator=(const ProgramOnScreen&) = delete;

  /// Shows what the program writes until `done` or until it has ended, for a minute at most. Returns whether
  /// `done` returned true at last.
  bool show_until(const std::function<bool()>& done);
  /// Shows everything until the program ends. Returns its exit code; 128 + N if signal N ended it.
  int finish();
  /// Changes the size of the terminal and of the screen.
  void resize(int width, int height = 24);
  void send_signal(int signal) const;

  Screen screen;
  std::string sent;  // all that it has written

 private:
  bool read_some();

  pid_t child_ = -1;
  int terminal_ = -1;
  std::optional<int> status_;
};

}  // namespace sweep::testing
