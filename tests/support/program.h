// Runs the built program and tells what came of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sweep::testing {

struct Finished {
  int code = -1;           // exit code; 128 + N if signal N ended it
  std::string out, err;    // what it wrote
  double cpu_seconds = 0;  // its own, so that a busy machine does not count
};

/// Runs `sweep WORDS…` in `directory` with an empty standard input, and waits.
Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& directory);

}  // namespace sweep::testing
