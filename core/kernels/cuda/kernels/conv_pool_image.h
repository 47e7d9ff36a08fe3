// One image, the input of a fused convolution, in the shared memory of a block.
#pragma once

#include <bit>

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// Banks of shared memory, a float wide each, and threads that read together.
inline constexpr int kBanks = 32, kWarpThreads = 32;

inline constexpr int round_up(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// Two floats that are read at once.
struct alignas(8) FloatPair {
  float x, y;
};

/// An image [channels][height][width] with zeros around each channel. Rows and channels may be further apart
/// than they are long, so that threads that read together use different banks.
struct PaddedImage {
  PaddedImage() = default;
  /// row_stride: floats from a row to the next, at least padded_width(); plane_stride: from a channel to the
  /// next, at least padded_height() · row_stride.
  PaddedImage(const ConvPoolShape& s, int row_stride_, int plane_stride_)
      : row_stride(row_stride_),
        plane_stride(plane_stride_),
        plane(s.in_height * s.in_width),
        elements(s.in_channels * plane),
        floats(s.in_channels * plane_stride),
        first(s.pad_y * row_stride + s.pad_x),
        by_plane(plane),
        by_width(s.in_width) {}

  int row_stride, plane_stride;
  int plane, elements;  // of a channel and of the image, without padding
  int floats;           // of the array
  int first;            // where element 0 is, after the padding above and left of it
  Divisor by_plane, by_width;

  /// The channel of element `i` of [channels][height][width], and where the element lies, in floats from the
  /// start of the array.
  struct Element {
    int channel, offset;
  };
  __device__ Element element(int i) const {
    const auto [channel, position] = by_plane.divide(i);
    const auto [y, x] = by_width.divide(position);
    return {channel, first + channel * plane_stride + y * row_stride + x};
  }
};

/// Image `image` of what the first convolution reads. values: of an image.
inline __device__ BatchSample input_sample(const ConvPoolInput& in, int image, int values) {
  if (in.floats == nullptr) return {*in.input, in.rows[image], values};
  BatchSample sample;
  sample.floats = in.floats + static_cast<std::ptrdiff_t>(image) * values;
  return sample;
}

/// The input of the first convolution on its way to shared memory: the thread's first kValues values are in
/// registers from load() to store(), so that the thread can compute while they arrive.
template <int kValues>
class ImageInFlight {
 public:
  /// Starts to load image `image`. `threads`: of the block, which all call it.
  __device__ void load(const PaddedImage& layout, const ConvPoolInput& in, int image, int threads) {
    const BatchSample sample = input_sample(in, image, layout.elements);
    are_floats_ = sample.floats != nullptr;
    for (int n = 0; n < kValues; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * threads;
      bits_[n] = i < layout.elements ? sample.bits(i) : 0;
    }
  }

  /// Writes the image that load() began with to `shared`, where its padding is zero already. Other threads
  /// see it after a barrier.
  __device__ void store(const PaddedImage& layout, const ConvPoolInput& in, int image, int threads,
                        float* shared) const {
    int i = static_cast<int>(threadIdx.x);
    for (int n = 0; n < kValues; ++n, i += threads) {
      if (i < layout.elements) set(shared, layout, in, i, bits_[n]);
    }
    if (layout.elements <= kValues * threads) return;
    const BatchSample sample = input_sample(in, image, layout.elements);
    SWEEP_ROLLED
    for (; i < layout.elements; i += threads) set(shared, layout, in, i, sample.bits(i));
  }

 private:
  __device__ void set(float* shared, const PaddedImage& layout, const ConvPoolInput& in, int i,
                      std::uint32_t bits) const {
    const auto [channel, offset] = layout.element(i);
    shared[offset] = BatchSample::value_of(bits, are_floats_, channel, in.normalisation);
  }

  std::uint32_t bits_[kValues] = {};
  bool are_floats_ = false;
};

/// Starts to copy `floats` floats to shared memory; see copy_async().
inline __device__ void copy_array(float* shared, const float* global, int floats, int threads) {
  SWEEP_ROLLED
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += threads) copy_async(shared + i, global + i);
}

inline __device__ void fill_with_zeros(float* shared, int floats, int threads) {
  SWEEP_ROLLED
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += threads) shared[i] = 0.0f;
}

}  // namespace sweep::cuda
