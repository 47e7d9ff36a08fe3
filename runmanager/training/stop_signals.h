// Ctrl-C and its relatives: the first asks to stop after the batch, the second leaves at once.
#pragma once

namespace sweep {

/// While one exists, SIGINT, SIGTERM and SIGUSR1 are noted instead of ending the process; a second SIGINT or
/// SIGTERM ends it at once, with exit code 128 + signal. At most one at a time. The previous handling is
/// restored at the end.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal that came, or 0.
  static int requested();
};

/// Reasons to stop that are no signals but are passed on like them.
inline constexpr int kTimeIsUp = -1, kOtherRunFailed = -2;

/// "SIGINT", "--max-time"; "a signal" for those not handled here.
const char* signal_name(int signal);

}  // namespace sweep
