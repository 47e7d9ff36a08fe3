// Patches of an image with zeros around it, which Winograd's transforms read; compiled once
// per Highway target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_WINOGRAD_IMAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_WINOGRAD_IMAGE_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_WINOGRAD_IMAGE_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_WINOGRAD_IMAGE_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "core/kernels/cpu/kernels/winograd/winograd_transforms-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
// Anonymous, because a source may be compiled with more compiler flags than the target has.
namespace {

// Channels of rows of pixels of kLanes floats. It reads as zero outside of rows [0, rows) and columns
// [first_column, end_column).
struct Image {
  const float* data;         // pixel (0, 0) of the first channel
  std::size_t plane, pitch;  // in floats
  std::ptrdiff_t rows, first_column, end_column;
};

HWY_INLINE Image image_of(const ConvGeometry& g, const float* in) {
  return {in,
          g.in_plane,
          g.in_width * kLanes,
          static_cast<std::ptrdiff_t>(g.in_height),
          0,
          static_cast<std::ptrdiff_t>(g.in_width)};
}

HWY_INLINE Image image_of(const ConvGradient& gradient) {
  const auto border = static_cast<std::ptrdiff_t>(gradient.border);
  return {gradient.data + gradient.border * kLanes,
          gradient.channel_floats(),
          gradient.pitch * kLanes,
          static_cast<std::ptrdiff_t>(gradient.rows),
          -border,
          static_cast<std::ptrdiff_t>(gradient.pitch) - border};
}

struct Channels {
  std::size_t begin, end;
};

// One of `slices` nearly equal ranges of channels: what is prefetched during the products at one frequency.
HWY_INLINE Channels channel_slice(std::size_t channels, std::size_t slices, std::size_t slice) {
  return {part_begin(channels, slices, slice), part_begin(channels, slices, slice + 1)};
}

// Prefetches height × width pixels from (y, x) on, as far as they are in the image, of some channels.
// Without it the transforms wait for memory: they read and write more streams at once than the
// hardware prefetcher follows.
HWY_INLINE void prefetch_pixels(const Image& image, const Channels& channels, std::ptrdiff_t y,
                                std::ptrdiff_t x, std::ptrdiff_t height, std::ptrdiff_t width) {
  const std::ptrdiff_t end_row = HWY_MIN(y + height, image.rows),
                       end_column = HWY_MIN(x + width, image.end_column);
  for (std::size_t channel = channels.begin; channel < channels.end; ++channel) {
    for (std::ptrdiff_t row = HWY_MAX(y, 0); row < end_row; ++row) {
      const float* pixels =
          image.data + channel * image.plane + row * static_cast<std::ptrdiff_t>(image.pitch);
      for (std::ptrdiff_t column = HWY_MAX(x, image.first_column); column < end_column; ++column)
        __builtin_prefetch(pixels + column * static_cast<std::ptrdiff_t>(kLanes), 0, 2);  // to the L2 cache
    }
  }
}

// A patch of kSize × kSize pixels from (y, x) of an image on. Rows that are whole are read in place, and
// missing rows from zeros_; only rows that the image's left or right edge cuts are copied.
template <std::size_t kSize>
class Patch {
 public:
  Patch(const Image& image, std::ptrdiff_t y, std::ptrdiff_t x) : image_(image), x_(x) {
    constexpr auto kCount = static_cast<std::ptrdiff_t>(kSize);
    for (std::ptrdiff_t row = 0; row < kCount; ++row) {
      const bool inside = y + row >= 0 && y + row < image.rows;
      offsets_[row] = inside ? (y + row) * static_cast<std::ptrdiff_t>(image.pitch) : kMissing;
    }
    begin_ = std::clamp<std::ptrdiff_t>(image.first_column - x, 0, kCount);
    end_ = std::clamp<std::ptrdiff_t>(image.end_column - x, begin_, kCount);
    whole_ = begin_ == 0 && end_ == kCount;
  }

  // Points to the rows of a channel; valid until the next call.
  HWY_INLINE void locate(std::size_t channel, const float* (&rows)[kSize]) {
    const float* first = image_.data + channel * image_.plane + x_ * static_cast<std::ptrdiff_t>(kLanes);
    for (std::size_t row = 0; row < kSize; ++row) {
      rows[row] = zeros_;
      if (offsets_[row] == kMissing) continue;
      if (whole_) {
        rows[row] = first + offsets_[row];
        continue;
      }
      constexpr auto kPixel = static_cast<std::ptrdiff_t>(kLanes);
      std::copy(first + offsets_[row] + begin_ * kPixel, first + offsets_[row] + end_ * kPixel,
                copies_[row] + begin_ * kPixel);
      rows[row] = copies_[row];
    }
  }

 private:
  static constexpr std::ptrdiff_t kMissing = -1;
  const Image& image_;
  std::ptrdiff_t x_, offsets_[kSize], begin_, end_;
  bool whole_;
  HWY_ALIGN float zeros_[kSize * kLanes] = {};
  HWY_ALIGN float copies_[kSize][kSize * kLanes] = {};
};

// Transforms the patches from (y, x) on of the first `channels` channels: result i of channel c is written to
// to + c · kProductTiles · kLanes + i · step.
template <class Transform>
HWY_INLINE void transform_patches_at(const Image& image, std::ptrdiff_t y, std::ptrdiff_t x,
                                     std::size_t channels, std::size_t step, float* to) {
  const Lanes d;
  Patch<Transform::kFrom> patch(image, y, x);
  for (std::size_t channel = 0; channel < channels; ++channel, to += kProductTiles * kLanes) {
    const float* rows[Transform::kFrom];
    patch.locate(channel, rows);
    for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
      transform_square<Transform>(
          d,
          [&](std::size_t row, std::size_t column)
              HWY_ATTR { return hn::Load(d, rows[row] + column * kLanes + lane); },
          [&](std::size_t row, std::size_t column, Vector value)
              HWY_ATTR { hn::Store(value, d, to + (row * Transform::kTo + column) * step + lane); });
    }
  }
}

}  // namespace
}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
