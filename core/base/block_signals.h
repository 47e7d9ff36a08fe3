// Starts threads with all signals blocked.
#pragma once

#include <signal.h>

namespace sweep {

/// Blocks every signal in the calling thread until it is destroyed. A new thread inherits the mask, so
/// threads started meanwhile never receive signals: SIGINT and SIGTERM reach the main thread, whose system
/// calls they have to interrupt, and a library's thread that exceeds the file size limit gets EFBIG from
/// write(), which it can report, instead of being killed by SIGXFSZ.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace sweep
