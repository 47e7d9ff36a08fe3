// Ctrl-C and the like: the first signal asks to stop after the batch, the second ends the process at once.
#pragma once

namespace sweep {

/// While an object exists, SIGINT, SIGTERM, SIGUSR1, SIGUSR2 and SIGHUP are recorded instead of ending the
/// process. A second SIGINT or SIGTERM ends it at once, with exit code 128 + signal. An ignored SIGHUP stays
/// ignored. At most one object may exist, because signal handling is the process's. The destructor restores
/// the previous handling.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal since the object was made, or 0. Thread-safe.
  static int requested();
};

/// Reasons to stop that are handled like signals.
inline constexpr int kTimeIsUp = -1, kOtherRunFailed = -2;

/// "SIGINT", "--max-time"; "a signal" for any that is not handled here.
const char* signal_name(int signal);

}  // namespace sweep
