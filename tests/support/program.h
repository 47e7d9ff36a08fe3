// Runs the built program and reports how it ended.
#pragma once

#include "tests/support/test.h"

namespace sweep::testing {

struct Finished {
  int code = -1;                 // exit code; 128 + N if signal N ended it
  std::string out, err;          // what it wrote; `out` is empty if standard output was a file
  double cpu_seconds = 0;        // of the program and its workers, so that a busy machine does not count
  std::uint64_t peak_bytes = 0;  // of resident memory, at least what the test itself had when it started it
};

struct ProgramOptions {
  std::filesystem::path standard_output = {};  // default: read into Finished::out
  /// What root may do beyond a file's permissions, the program may not. Without the right to give that up the
  /// program is not started, and the code is kCannotDrop.
  bool obeys_permissions = false;
};

inline constexpr int kCannotDrop = 122;

/// The program under test: the environment variable SWEEP_PROGRAM if it is set, because tests may have been
/// moved away from where they were built; `built` otherwise.
std::string program_path(const char* built);

/// Runs `program WORDS…` in `directory` with an empty standard input, and waits for it to end. A program that
/// cannot be started fails the test.
Finished run_program(const std::string& program, const std::vector<std::string>& words,
                     const std::filesystem::path& directory, const ProgramOptions& options = {});

#if defined(SWEEP_PROGRAM)
/// The same with the program that the build names.
inline Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& directory,
                            const ProgramOptions& options = {}) {
  return run_program(program_path(SWEEP_PROGRAM), words, directory, options);
}
#endif

}  // namespace sweep::testing
