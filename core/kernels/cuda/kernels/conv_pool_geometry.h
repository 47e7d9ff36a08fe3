// What the forward and the backward kernel of conv_pool.h share: sizes of one convolution and how its image
// is loaded. How each kernel divides its work among threads is in its own file.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/runtime/divisor.h"

namespace sweep::cuda {

/// Threads of a block.
inline constexpr int kConvThreads = 512;

struct ConvPoolGeometry {
  ConvPoolGeometry() = default;
  explicit ConvPoolGeometry(const ConvPoolShape& s)
      : shape(s),
        pooled_plane(s.pool_height * s.pool_width),
        plane(s.in_height * s.in_width),
        image_floats(s.in_channels * s.padded_height() * s.padded_width()),
        by_padded_plane(s.padded_height() * s.padded_width()),
        by_padded_width(s.padded_width()),
        by_pooled_plane(pooled_plane),
        by_pool_width(s.pool_width) {}

  ConvPoolShape shape;
  int pooled_plane;  // outputs of one channel
  int plane;         // inputs of one channel
  int image_floats;  // input of one image with its padding
  Divisor by_padded_plane, by_padded_width, by_pooled_plane, by_pool_width;
};

/// Into how many splits a sum over channels is divided so that `outputs` sums occupy all threads of a block;
/// returns the channels of a split. Depends on the shape alone, as the bits of the sums do.
inline int channels_per_split(int channels, int outputs) {
  const int splits = outputs < kConvThreads ? kConvThreads / outputs : 1;
  return ceil_div(channels, splits);
}

/// Loads image `image` of the batch to `shared` [channels][padded height][padded width], zeros in the
/// padding. All threads of the block call it; neighbouring threads read neighbouring elements.
inline __device__ void load_image(const ConvPoolGeometry& g, const ConvPoolInput& in, int image,
                                  float* shared) {
  const ConvPoolShape& s = g.shape;
  const int sample = s.in_channels * g.plane;
  const bool reads_batch = in.floats == nullptr;
  const float* floats = reads_batch ? nullptr : in.floats + static_cast<std::ptrdiff_t>(image) * sample;
  const BatchSample of_batch = reads_batch ? BatchSample(*in.input, in.rows[image], sample) : BatchSample{};
  for (int i = static_cast<int>(threadIdx.x); i < g.image_floats; i += kConvThreads) {
    const auto [channel, position] = g.by_padded_plane.divide(i);
    const auto [padded_y, padded_x] = g.by_padded_width.divide(position);
    const int y = padded_y - s.pad_y, x = padded_x - s.pad_x;
    float value = 0.0f;
    if (y >= 0 && y < s.in_height && x >= 0 && x < s.in_width) {
      const int element = channel * g.plane + y * s.in_width + x;
      value = reads_batch ? of_batch.value(element, g.plane, in.normalisation) : floats[element];
    }
    shared[i] = value;
  }
}

}  // namespace sweep::cuda
