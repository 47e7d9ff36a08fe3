#include "core/kernels/cuda/runtime/device_clock.h"

namespace sweep::cuda {

void DeviceClock::start(Stream& stream) {
  if (!running_) return;
  if (used_ == kSpans) read_oldest();
  if (first_ + used_ == spans_.size() && spans_.size() < kSpans) spans_.emplace_back();
  stream.record(spans_[(first_ + used_) % spans_.size()].begin);
}

void DeviceClock::stop(Stream& stream) {
  if (!running_) return;
  stream.record(spans_[(first_ + used_) % spans_.size()].end);
  ++used_;
}

double DeviceClock::take() {
  running_ = true;
  while (used_ > 0) read_oldest();
  first_ = 0;
  return std::exchange(seconds_, 0.0);
}

void DeviceClock::read_oldest() {
  const Span& oldest = spans_[first_];
  seconds_ += oldest.end.seconds_since(oldest.begin);
  first_ = (first_ + 1) % spans_.size();
  --used_;
}

}  // namespace sweep::cuda
