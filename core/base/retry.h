// Repeats system calls that a signal has interrupted.
#pragma once

#include <unistd.h>

#include <cerrno>

namespace sweep {

/// Makes `call` until it ends otherwise than with -1 and EINTR; returns what it then returned. For calls that
/// change nothing if they are interrupted; so not for close(). Thread-safe.
template <typename Call>
auto retry_interrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// close(), which on Linux has closed the descriptor also if it was interrupted.
inline int close_descriptor(int fd) { return ::close(fd) == 0 || errno == EINTR ? 0 : -1; }

}  // namespace sweep
