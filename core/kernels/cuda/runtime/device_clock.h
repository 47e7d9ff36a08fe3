// How long the device works, by its own clock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Adds up the times between pairs of start() and stop() on a stream, without waiting for them. Stands until
/// the first take(), so that who never asks pays nothing.
class DeviceClock {
 public:
  void start(Stream& stream);
  void stop(Stream& stream);

  /// Seconds of the pairs since the last take(); waits for them. 0 the first time.
  double take();

 private:
  struct Span {
    Event begin{Event::Kind::kTime}, end{Event::Kind::kTime};
  };
  // More than is put on a stream between two take(), and than a device can lie behind.
  static constexpr std::size_t kSpans = 256;
  void read_oldest();

  bool running_ = false;
  std::vector<Span> spans_;  // a ring once it has kSpans
  std::size_t first_ = 0, used_ = 0;
  double seconds_ = 0;
};

}  // namespace sweep::cuda
