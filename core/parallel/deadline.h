// Deadlines that a process does not miss because it did not run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace sweep {

/// Counts the time that its owner has waited. At most one second counts between two looks: a process that was
/// stopped, or a machine that was suspended, has not waited. Look several times a second. Not thread-safe.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  explicit Deadline(double seconds, Clock::time_point now = Clock::now()) : left_(seconds), last_(now) {}

  /// Whether the time is over, counted until `now`.
  bool is_over(Clock::time_point now = Clock::now()) {
    left_ -= std::min(Seconds(now - last_), Seconds(1));
    last_ = now;
    return left_ <= Seconds(0);
  }

 private:
  Seconds left_;
  Clock::time_point last_;
};

/// For exchanges that take less than a second: a rank that is this late is taken for lost.
inline constexpr double kCommunicatorDeadline = 120;

/// Why it is: the reason in messages.
inline std::string silence(double deadline) {
  return "has not answered for " + std::to_string(std::lround(deadline)) + " s";
}

}  // namespace sweep
