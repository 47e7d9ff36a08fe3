// Runs a program of Slurm's with a time limit, and takes what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace sweep {

struct CommandResult {
  bool started = false;    // false: there is no such program
  bool timed_out = false;  // it was ended because it took too long
  int code = -1;           // its exit code; 128 + N if signal N ended it
  std::string out, err;    // at most 64 MiB each
};

/// Runs `words`, the first of which is looked for in PATH, with an empty standard input and without a shell.
/// What takes longer than `limit` is killed. Throws IoError if no process can be started for want of memory
/// or descriptors. Thread-safe.
CommandResult run_command(const std::vector<std::string>& words, std::chrono::milliseconds limit);

}  // namespace sweep
