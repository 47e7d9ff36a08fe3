#include "runmanager/training/stop_signals.h"

#include <unistd.h>

#include <atomic>

#include "core/base/child.h"

namespace sweep {
namespace {

// Global, because a signal handler gets no argument of its own. Only lock-free atomics are safe in one.
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kStopSignals.size()> previous;
int installed = 0;  // StopSignals that there are

extern "C" void record_signal(int signal) {
  int none = 0;
  const bool is_first = first_signal.compare_exchange_strong(none, signal);
  // When a terminal is closed, the shell and the kernel may send SIGHUP each.
  if (is_first || signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP) return;
  // Ends the line of the progress bars, so that the shell's prompt appears below them.
  if (::isatty(STDERR_FILENO) != 0) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, "\n", 1);
  ::_exit(128 + signal);
}

}  // namespace

StopSignals::StopSignals() {
  if (++installed > 1) return;
  first_signal = 0;
  struct sigaction action = {};
  action.sa_handler = record_signal;
  // Interrupted system calls, such as writes to files, continue: the training loop asks for the signal
  // itself.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    ::sigaction(kStopSignals[i], &action, &previous[i]);
    // nohup has this signal ignored, and the training is to go on after it.
    if (kStopSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN)
      ::sigaction(SIGHUP, &previous[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  if (--installed > 0) return;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) ::sigaction(kStopSignals[i], &previous[i], nullptr);
}

int StopSignals::requested() { return first_signal; }

std::string signal_name(int signal) {
  if (signal == kTimeIsUp) return "--max-time";
  if (signal == kOtherRunFailed) return "--fail-fast";
  return name_of_signal(signal);
}

}  // namespace sweep
