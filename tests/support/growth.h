// How a cost grows with its size.
#pragma once

#include <time.h>

#include "tests/support/test.h"

namespace sweep::test {

/// Returns how many times as much CPU time of this thread `work(4 * size)` takes as `work(size)`: about 4 if
/// the time is linear, 16 if it is quadratic. Takes the smallest of a few rounds, so other processes matter
/// little; one call should take a millisecond or more.
inline double growth(const std::function<void(std::size_t)>& work, std::size_t size) {
  const auto seconds = [&work](std::size_t n) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double start = now();
    work(n);
    return now() - start;
  };
  double least = HUGE_VAL;
  for (int round = 0; round < 5 && least > 5; ++round) {
    const double small = seconds(size);
    least = std::min(least, seconds(4 * size) / small);
  }
  return least;
}

/// Above every linear growth() and below every quadratic one.
inline constexpr double kLinearGrowth = 9;

}  // namespace sweep::test
