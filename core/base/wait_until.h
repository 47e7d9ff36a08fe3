// Waiting for a condition without a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sweep {

/// Returns when `holds()` is true, which is called with the lock held; `changed` is notified when that may
/// change. Like changed.wait(lock, holds), but by timed waits: GCC 12 gave wait() a new symbol version, which
/// some systems that can run the program lack (RHEL 9).
template <class Holds>
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Holds holds) {
  while (!holds()) changed.wait_for(lock, std::chrono::hours(1));
}

}  // namespace sweep
