// Starting threads that no signal goes to.
#pragma once

#include <signal.h>

namespace sweep {

/// While it lives, threads are started with every signal blocked: signals are for the program's own threads,
/// where they interrupt what they are meant to interrupt, and SIGXFSZ would end the program where write() can
/// say what is wrong. For the calling thread only.
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
