#include "core/kernels/cpu/kernels/bf16_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/bf16_pairs.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

using Bits = hn::RebindToUnsigned<Lanes>;

// Rounds each float to bf16, which is the upper half of the result; the lower half is garbage.
HWY_INLINE hn::Vec<Bits> round_to_bf16(Vector value) {
  const Bits du;
  const auto bits = hn::BitCast(du, value);
  // Adds 0x7FFF, just below half a unit of the last bit kept, plus that bit: exactly half rounds up only if
  // the bit is odd, so ties go to even. A carry into the exponent is right, too.
  const auto tie = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto sum = hn::Add(bits, hn::Add(tie, hn::Set(du, 0x7FFF)));
  // For NaN the carry could reach the sign. The quiet bit keeps it a NaN when its
  // payload is in the lower half.
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), hn::Or(bits, hn::Set(du, 0x400000)), sum);
}

// The pair of two rounded values: odd in the upper half, even in the lower.
HWY_INLINE Vector round_pair(Vector even, Vector odd) {
  const Lanes d;
  const Bits du;
  const auto upper = hn::And(round_to_bf16(odd), hn::Set(du, 0xFFFF0000u));
  return hn::BitCast(d, hn::Or(upper, hn::ShiftRight<16>(round_to_bf16(even))));
}

void pack_pairs(const float* even, const float* odd, std::size_t count, float* pairs) {
  const Lanes d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const Vector high = odd == nullptr ? hn::Zero(d) : hn::LoadU(d, odd + i);
    hn::StoreU(round_pair(hn::LoadU(d, even + i), high), d, pairs + i);
  }
  if (i == count) return;
  HWY_ALIGN float tail[3][kLanes] = {};
  for (std::size_t j = 0; j < count - i; ++j) {
    tail[0][j] = even[i + j];
    if (odd != nullptr) tail[1][j] = odd[i + j];
  }
  hn::Store(round_pair(hn::Load(d, tail[0]), hn::Load(d, tail[1])), d, tail[2]);
  for (std::size_t j = 0; j < count - i; ++j) pairs[i + j] = tail[2][j];
}

void pack_adjacent_pairs(const float* first, const float* second, float* pairs) {
  const Lanes d;
  HWY_ALIGN float values[2 * kLanes] = {};
  for (std::size_t i = 0; i < kLanes; ++i) values[i] = first[i];
  for (std::size_t i = 0; second != nullptr && i < kLanes; ++i) values[kLanes + i] = second[i];
  for (std::size_t i = 0; i < kLanes; i += hn::Lanes(d)) {
    Vector even, odd;
    hn::LoadInterleaved2(d, values + 2 * i, even, odd);
    hn::Store(round_pair(even, odd), d, pairs + i);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(pack_pairs);
HWY_EXPORT(pack_adjacent_pairs);

void pack_pairs(const float* even, const float* odd, std::size_t count, float* pairs) {
  HWY_DYNAMIC_DISPATCH(pack_pairs)(even, odd, count, pairs);
}

void pack_channel_pairs(const float* values, std::size_t channels, std::size_t count, std::size_t stride,
                        float* pairs) {
  for (std::size_t c = 0; c < channels; c += 2) {
    pack_pairs(values + c * stride, c + 1 < channels ? values + (c + 1) * stride : nullptr, count,
               pairs + c / 2 * stride);
  }
}

void pack_adjacent_pairs(const float* first, const float* second, float* pairs) {
  HWY_DYNAMIC_DISPATCH(pack_adjacent_pairs)(first, second, pairs);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
