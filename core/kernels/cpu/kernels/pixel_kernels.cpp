#include "core/kernels/cpu/kernels/sample_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/pixel_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"
#include "core/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// x / 255, correctly rounded: a multiplication by the reciprocal and one Newton correction, several
// times as fast as a division.
HWY_INLINE Vector divide_by_255(Lanes d, Vector x) {
  const Vector reciprocal = hn::Set(d, 1.0f / 255.0f);
  const Vector quotient = hn::Mul(x, reciprocal);
  const Vector remainder = hn::NegMulAdd(hn::Set(d, 255.0f), quotient, x);
  return hn::MulAdd(remainder, reciprocal, quotient);
}

HWY_INLINE void store_pixel(const std::uint8_t* bytes, float* out) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const hn::Rebind<std::uint8_t, Lanes> du8;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(di, hn::LoadU(du8, bytes + lane));
    hn::Store(divide_by_255(d, hn::ConvertTo(d, wide)), d, out + lane);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes 16 × 16 bytes, from byte `offset` of each row on, in four rounds of perfect shuffles.
HWY_INLINE void transpose_bytes(const std::uint8_t* const (&rows)[kLanes], std::size_t offset,
                                std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  hn::Vec<decltype(d)> a[16], b[16];
  for (std::size_t i = 0; i < 16; ++i) a[i] = hn::LoadU(d, rows[i] + offset);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + 8]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + 8]);
    }
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
  for (std::size_t i = 0; i < 16; ++i) hn::Store(a[i], d, out + i * 16);
}
#endif

void load_pixels(const std::uint8_t* const (&images)[kLanes], std::size_t pixels, float* out) {
  std::size_t pixel = 0;
  HWY_ALIGN std::uint8_t square[kLanes * kLanes];
#if HWY_TARGET != HWY_SCALAR
  for (; pixel + 16 <= pixels; pixel += 16) {
    transpose_bytes(images, pixel, square);
    for (std::size_t i = 0; i < 16; ++i) store_pixel(square + i * kLanes, out + (pixel + i) * kLanes);
  }
#endif
  for (; pixel < pixels; ++pixel) {
    for (std::size_t image = 0; image < kLanes; ++image) square[image] = images[image][pixel];
    store_pixel(square, out + pixel * kLanes);
  }
}

void load_floats(const float* const (&samples)[kLanes], std::size_t values, float* out) {
  images_to_lanes(
      values, samples, [](std::size_t value) { return value * kLanes; }, out);
}

void normalize_pixels(std::span<const float> mean, std::span<const float> std, std::size_t plane,
                      float* values) {
  const Lanes d;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const Vector shift = hn::Set(d, mean[c]), scale = hn::Set(d, std[c]);
    float* channel = values + c * plane * kLanes;
    for (std::size_t i = 0; i < plane * kLanes; i += hn::Lanes(d)) {
      hn::Store(hn::Div(hn::Sub(hn::Load(d, channel + i), shift), scale), d, channel + i);
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(load_pixels);
SWEEP_EXPORT_KERNEL(load_floats);
SWEEP_EXPORT_KERNEL(normalize_pixels);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
