// Waiting for a condition without a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sweep {

/// Returns when `holds()` is true, which is called with the lock held; `changed` is notified of what it
/// depends on. As changed.wait(lock, holds), but for the library function that this calls: GCC 12 gave it a
/// new version, which the libstdc++ of systems lacks on which the program otherwise runs (RHEL 9). Timed
/// waits kept theirs.
template <class Holds>
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Holds holds) {
  while (!holds()) changed.wait_for(lock, std::chrono::hours(1));
}

}  // namespace sweep
