// Deadlines that a process does not miss because it did not run.
#pragma once

#include <algorithm>
#include <chrono>

namespace sweep {

/// Counts the time that its owner has waited, from look to look. Of the time between two looks at most a
/// second counts: a process that was stopped, or a machine that was suspended, has not waited. To be looked
/// at several times a second. Not thread-safe.
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

/// For what takes less than a second between devices: a rank that is this late is taken for lost.
inline constexpr double kCommunicatorDeadline = 120;

}  // namespace sweep
