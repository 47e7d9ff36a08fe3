#include "tools/benchmarks/engine_benchmark.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/benchmarks/fma_peak.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 12 accumulators: enough to cover the latency of two FMA units (4 to 5 cycles), and
// few enough for 16 registers.
double fma_rounds(long rounds) {
  constexpr int kSums = 12;
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), summand = hn::Set(d, 0.001f);
  hn::Vec<decltype(d)> s[kSums];
  for (int i = 0; i < kSums; ++i) s[i] = hn::Set(d, static_cast<float>(i));
  for (long round = 0; round < rounds; ++round) {
    for (int i = 0; i < kSums; ++i) s[i] = hn::MulAdd(s[i], factor, summand);
  }
  auto sum = s[0];
  for (int i = 1; i < kSums; ++i) sum = hn::Add(sum, s[i]);
  // The sums converge to 1, so the condition holds, but the compiler does not know
  // it and cannot drop the loop.
  const float total = hn::GetLane(hn::SumOfLanes(d, sum));
  return total > 0 ? 2.0 * kSums * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds) : 0;
}

}  // namespace sweep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep {

HWY_EXPORT(fma_rounds);
double run_fma_rounds(long rounds) { return HWY_DYNAMIC_DISPATCH(fma_rounds)(rounds); }

}  // namespace sweep
#endif  // HWY_ONCE
