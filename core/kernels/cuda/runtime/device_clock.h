// Measures how long the device works, with its own clock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Adds up the device time between pairs of start() and stop() on a stream, without waiting for the device.
/// Does nothing before the first take(), so callers who never ask pay nothing. Not thread-safe.
class DeviceClock {
 public:
  void start(Stream& stream) {
    if (!running_) return;
    if (used_ == kSpans) read_oldest();
    if (first_ + used_ == spans_.size() && spans_.size() < kSpans) spans_.emplace_back();
    stream.record(spans_[(first_ + used_) % spans_.size()].begin);
  }
  void stop(Stream& stream) {
    if (!running_) return;
    stream.record(spans_[(first_ + used_) % spans_.size()].end);
    ++used_;
  }

  /// Whether the next start() waits for the oldest pair that was not taken, on the device.
  bool is_full() const { return running_ && used_ == kSpans; }

  /// Returns the seconds of the pairs since the last take(), and starts anew. Waits for the pairs. 0 the
  /// first time.
  double take() {
    running_ = true;
    while (used_ > 0) read_oldest();
    first_ = 0;
    return std::exchange(seconds_, 0.0);
  }

 private:
  struct Span {
    Event begin{Event::Kind::kTime}, end{Event::Kind::kTime};
  };
  // When so many pairs are open, start() waits for the oldest. A stream is never so far ahead of the device,
  // unless that waits for another one.
  static constexpr std::size_t kSpans = 256;

  void read_oldest() {
    const Span& oldest = spans_[first_];
    seconds_ += oldest.end.seconds_since(oldest.begin);
    first_ = (first_ + 1) % spans_.size();
    --used_;
  }

  bool running_ = false;
  std::vector<Span> spans_;  // a ring once it has kSpans
  std::size_t first_ = 0, used_ = 0;
  double seconds_ = 0;
};

}  // namespace sweep::cuda
