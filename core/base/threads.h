// Starting threads, how many of them, and waiting for them.
#pragma once

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"

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

/// How many cores a container may keep busy, rounded up, by its file cpu.max of cgroups, such as
/// "150000 100000"; nothing if it has no limit.
std::optional<int> cores_of_quota(std::istream& cpu_max);

/// Hardware threads that this process may run on, >= 1: not more than a container's limit of processor time
/// keeps busy, because others would wait for those that are out of it. Thread-safe.
int available_cores();

/// Starts a thread that calls `body`. Throws Error if the system has no thread left: "cannot start a thread
/// that PURPOSE: Resource temporarily unavailable". Thread-safe.
template <typename Body>
std::thread start_thread(const std::string& purpose, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error("cannot start a thread that " + purpose + ": " + error.code().message() +
                "; is a limit on processes and threads (ulimit -u) reached?");
  }
}

/// Returns when `holds()` is true, which is called with the lock held; `changed` is notified when that may
/// change. Like changed.wait(lock, holds), but by timed waits: GCC 12 gave wait() a new symbol version, which
/// some systems that can run the program lack (RHEL 9).
template <class Holds>
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Holds holds) {
  while (!holds()) changed.wait_for(lock, std::chrono::hours(1));
}

}  // namespace sweep
