// Ctrl-C and the like: the first signal asks to stop after the batch, the second ends the process at once.
#pragma once

#include <signal.h>

#include <array>
#include <string>

namespace sweep {

/// What a terminal or batch system sends to all processes of a job that is to stop.
inline constexpr std::array<int, 5> kStopSignals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};

/// While an object exists, kStopSignals are recorded instead of ending the process. A second SIGINT or
/// SIGTERM ends it at once, with exit code 128 + signal. An ignored SIGHUP stays ignored. Signal handling is
/// the process's, so an object that is made while there is another one changes nothing. The destructor of the
/// first one restores the previous handling. One thread makes and destroys them.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal since there was no object, or 0. Thread-safe.
  static int requested();
};

/// Reasons to stop that are handled like signals.
inline constexpr int kTimeIsUp = -1, kOtherRunFailed = -2;

/// "SIGINT", "--max-time".
std::string signal_name(int signal);

}  // namespace sweep
