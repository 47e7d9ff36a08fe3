#include "core/kernels/cuda/runtime/kernel_timer.h"

#include <algorithm>

namespace sweep::cuda {
namespace {

double seconds(Stream& stream, const std::function<void()>& work, int times) {
  const Event begin(Event::Kind::kTime), end(Event::Kind::kTime);
  stream.record(begin);
  for (int i = 0; i < times; ++i) work();
  stream.record(end);
  return end.seconds_since(begin) / times;
}

}  // namespace

KernelTimer kernel_timer() {
  return [](Stream& stream, const std::function<void()>& work) {
    constexpr double kRound = 0.002;  // seconds: long enough to hide the launches
    constexpr int kMax = 50, kRounds = 3;
    seconds(stream, work, 1);  // warm-up: loads the kernels to the device
    const double once = seconds(stream, work, 1);
    const int times = std::clamp(static_cast<int>(kRound / std::max(once, 1e-6)), 1, kMax);
    double best = once;
    for (int round = 0; round < kRounds; ++round) best = std::min(best, seconds(stream, work, times));
    return best;
  };
}

}  // namespace sweep::cuda
