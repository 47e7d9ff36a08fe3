// Transposes between blocks, where a vector holds the same element of 16 images, and one array per image.
// Compiled once per Highway target.
#if defined(SWEEP_CORE_KERNELS_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_TRANSPOSE_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_TRANSPOSE_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// Transposes kSize × kSize floats in registers, where kSize is the number of lanes of a vector: lane j of
// v[i] and lane i of v[j] change places.
template <int kSize>
HWY_INLINE void transpose_square(Lanes d, Vector (&v)[kSize]) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kSize >= 4) {
    // 4 × 4 squares within 128-bit blocks.
    for (int i = 0; i < kSize; i += 4) {
      const Vector a = hn::InterleaveLower(d, v[i], v[i + 2]), b = hn::InterleaveLower(d, v[i + 1], v[i + 3]);
      const Vector c = hn::InterleaveUpper(d, v[i], v[i + 2]), e = hn::InterleaveUpper(d, v[i + 1], v[i + 3]);
      v[i] = hn::InterleaveLower(d, a, b);
      v[i + 1] = hn::InterleaveUpper(d, a, b);
      v[i + 2] = hn::InterleaveLower(d, c, e);
      v[i + 3] = hn::InterleaveUpper(d, c, e);
    }
  }
  if constexpr (kSize == 8) {
    for (int i = 0; i < 4; ++i) {
      const Vector low = v[i], high = v[i + 4];
      v[i] = hn::ConcatLowerLower(d, high, low);
      v[i + 4] = hn::ConcatUpperUpper(d, high, low);
    }
  }
  if constexpr (kSize == 16) {
    // What is left is to transpose a 4 × 4 matrix of 128-bit blocks: first within
    // pairs of blocks, then the halves.
    for (int i = 0; i < 16; ++i) {
      if ((i & 4) != 0) continue;
      const Vector even = v[i], odd = v[i + 4];
      v[i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even);
      v[i + 4] = hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even));
    }
    for (int i = 0; i < 8; ++i) {
      const Vector low = v[i], high = v[i + 8];
      v[i] = hn::ConcatLowerLower(d, high, low);
      v[i + 8] = hn::ConcatUpperUpper(d, high, low);
    }
  }
#else
  (void)d, (void)v;  // one lane
#endif
}

// Transposes one pixel of `channels` <= 16 channels, `plane` floats apart, of the first `images` images:
// to[image · step + channel], with zeros for the other channels.
HWY_INLINE void transpose_pixel(const float* from, std::size_t plane, std::size_t channels,
                                std::size_t images, std::size_t step, float* to) {
  const Lanes d;
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  for (std::size_t channel = 0; channel < kLanes; channel += kSize) {
    for (std::size_t image = 0; image < images; image += kSize) {
      Vector v[kSize];
      for (std::size_t i = 0; i < kSize; ++i) {
        v[i] = channel + i < channels ? hn::Load(d, from + (channel + i) * plane + image) : hn::Zero(d);
      }
      transpose_square<static_cast<int>(kSize)>(d, v);
      for (std::size_t i = 0; i < HWY_MIN(kSize, images - image); ++i)
        hn::Store(v[i], d, to + (image + i) * step + channel);
    }
  }
}

// images[image · stride + e] = block[offsets[e] + image] for all 16 images and e < count. offsets [count] are
// in floats and multiples of kLanes.
HWY_INLINE void lanes_to_images(std::size_t count, std::size_t stride, const float* block,
                                const std::uint32_t* offsets, float* images) {
  const Lanes d;
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  std::size_t e = 0;
  for (; e + kSize <= count; e += kSize) {
    for (std::size_t lane = 0; lane < kLanes; lane += kSize) {
      Vector v[kSize];
      for (std::size_t i = 0; i < kSize; ++i) v[i] = hn::Load(d, block + offsets[e + i] + lane);
      transpose_square<static_cast<int>(kSize)>(d, v);
      for (std::size_t i = 0; i < kSize; ++i) hn::StoreU(v[i], d, images + (lane + i) * stride + e);
    }
  }
  for (; e < count; ++e) {
    for (std::size_t image = 0; image < kLanes; ++image)
      images[image * stride + e] = block[offsets[e] + image];
  }
}

// The inverse: block[offset_of(e) + image] = images[image][e].
template <class OffsetOf>
HWY_INLINE void images_to_lanes(std::size_t count, const float* const (&images)[kLanes],
                                const OffsetOf& offset_of, float* block) {
  const Lanes d;
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  std::size_t e = 0;
  for (; e + kSize <= count; e += kSize) {
    for (std::size_t lane = 0; lane < kLanes; lane += kSize) {
      Vector v[kSize];
      for (std::size_t i = 0; i < kSize; ++i) v[i] = hn::LoadU(d, images[lane + i] + e);
      transpose_square<static_cast<int>(kSize)>(d, v);
      for (std::size_t i = 0; i < kSize; ++i) hn::Store(v[i], d, block + offset_of(e + i) + lane);
    }
  }
  for (; e < count; ++e) {
    for (std::size_t image = 0; image < kLanes; ++image) block[offset_of(e) + image] = images[image][e];
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
