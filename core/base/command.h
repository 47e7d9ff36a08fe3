// Runs another program to its end, and takes what it says.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sweep {

struct CommandResult {
  bool started = false;  // false: there is no such program, or it may not be executed
  bool ended = false;    // `goes_on` ended it
  int code = -1;         // its exit code; 128 + N if signal N ended it
  std::string out, err;  // at most 64 MiB each
};

/// Runs the program words[0], which is looked for in PATH, with an empty standard input and without a shell.
/// It does not get Ctrl-C. `goes_on` is called about ten times a second; if it returns false or throws, the
/// program is killed with all that it started. Throws IoError if memory or descriptors are too few for a
/// process, and what `goes_on` throws. Thread-safe.
CommandResult run_command(const std::vector<std::string>& words, const std::function<bool()>& goes_on);

}  // namespace sweep
