// Exit codes of the program. Those of a stopped sweep, 75, 130 and 143, come from SweepOutcome::exit_code.
#pragma once

#include <exception>
#include <span>
#include <string>

namespace sweep {

inline constexpr int kExitDone = 0;        // all runs done or skipped
inline constexpr int kExitFailed = 1;      // a run failed, memory ran out, or any other error
inline constexpr int kExitBadInput = 2;    // command line, sweep file or data
inline constexpr int kExitUnwritable = 3;  // disk, permission, held by another sweep

struct ExitCode {
  const char* code;     // "129, 130, 143": several of one kind
  const char* meaning;  // half a line
};

/// All of them, for help and the manual.
std::span<const ExitCode> exit_codes();

/// The code for an error that ended the program: kExitFailed unless its type says more.
int exit_code(const std::exception& error);

/// Returns the message for the user: its own text; for a file system error the path, what is wrong and, if a
/// name is too long, the limit.
std::string message_of(const std::exception& error);

}  // namespace sweep
