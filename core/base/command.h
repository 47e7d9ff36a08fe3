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

/// Runs `words`, the first of which is looked for in PATH, with an empty standard input and without a shell.
/// Ctrl-C is not for it. `goes_on` is called about ten times a second; if it returns false or throws, the
/// program is killed with all that it started. Throws IoError if no process can be started for want of memory
/// or descriptors, and what `goes_on` throws. Thread-safe.
CommandResult run_command(const std::vector<std::string>& words, const std::function<bool()>& goes_on);

}  // namespace sweep
