// How the kernels of conv_pool.h share out the work on one convolution, and what they know of its shape.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/runtime/divisor.h"

namespace sweep::cuda {

inline constexpr int kConvThreads = 512;
inline constexpr int kMaxKernelWidth = 7;  // kernel columns that a thread adds up in registers
inline constexpr int kOwnChannels = 2;     // output channels per thread, forward
inline constexpr int kOwnInputs = 8;       // input channels per thread, for the input's gradient

struct ConvPoolGeometry {
  ConvPoolGeometry() = default;
  explicit ConvPoolGeometry(const ConvPoolShape& s)
      : shape(s),
        places(s.pool_height * s.pool_width),
        plane(s.in_height * s.in_width),
        image_floats(s.in_channels * s.padded_height() * s.padded_width()),
        chunks(ceil_div(s.out_channels, kOwnChannels)),
        channel_share(share_of(s.in_channels, chunks * places)),
        splits(ceil_div(s.in_channels, channel_share)),
        items(s.out_channels * s.in_channels * s.kernel_height),
        groups(items < kConvThreads ? kConvThreads / items : 1),
        in_chunks(ceil_div(s.in_channels, kOwnInputs)),
        out_share(share_of(s.out_channels, in_chunks * plane)),
        out_splits(ceil_div(s.out_channels, out_share)),
        padded_plane(s.padded_height() * s.padded_width()),
        padded_width(s.padded_width()),
        by_place(places),
        by_pool_width(s.pool_width),
        by_chunk(chunks),
        by_kernel_height(s.kernel_height),
        by_in_channels(s.in_channels),
        by_plane(plane),
        by_in_width(s.in_width),
        by_in_chunk(in_chunks) {}

  // The share of `count` channels that each thread adds up, so that the block's threads have something to do.
  static int share_of(int count, int items) {
    const int splits = items < kConvThreads ? kConvThreads / items : 1;
    return ceil_div(count, splits);
  }

  ConvPoolShape shape;
  int places, plane, image_floats;
  int chunks, channel_share, splits;     // forward: of output channels; of the sums over the input channels
  int items, groups;                     // weights: rows of kernels; of threads that share out the places
  int in_chunks, out_share, out_splits;  // input's gradient: of its channels; of the sums over the outputs'
  Divisor padded_plane, padded_width, by_place, by_pool_width, by_chunk, by_kernel_height, by_in_channels,
      by_plane, by_in_width, by_in_chunk;

  /// Floats of the arrays in shared memory.
  int forward_parts() const { return splits > 1 ? splits * chunks * places * kOwnChannels * 4 : 0; }
  int input_parts() const { return out_splits > 1 ? out_splits * in_chunks * plane * kOwnInputs : 0; }
  int turned_weights() const {
    return shape.out_channels * shape.kernel_height * shape.kernel_width * in_chunks * kOwnInputs;
  }
  int group_sums() const { return groups > 1 ? groups * shape.gradient_floats() : 0; }
};

/// Bytes of shared memory for conv_pool_backward(), with or without grad_in.
std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient);

/// Brings image `image` of the batch to shared memory, with its padding.
inline __device__ void load_image(const ConvPoolGeometry& g, const ConvPoolInput& in, int image,
                                  float* shared) {
  const ConvPoolShape& s = g.shape;
  const int sample = s.in_channels * g.plane;
  const std::uint8_t* bytes =
      in.floats != nullptr
          ? nullptr
          : in.input->pixels + static_cast<std::size_t>(in.rows[image]) * static_cast<std::size_t>(sample);
  const float* floats =
      in.floats == nullptr ? nullptr : in.floats + static_cast<std::ptrdiff_t>(image) * sample;
  for (int i = static_cast<int>(threadIdx.x); i < g.image_floats; i += kConvThreads) {
    const auto [channel, place] = g.padded_plane.divide(i);
    const auto [padded_y, padded_x] = g.padded_width.divide(place);
    const int y = padded_y - s.pad_y, x = padded_x - s.pad_x;
    float value = 0.0f;
    if (y >= 0 && y < s.in_height && x >= 0 && x < s.in_width) {
      const int element = channel * g.plane + y * s.in_width + x;
      value = bytes != nullptr ? pixel_value(bytes, element, g.plane, in.normalisation) : floats[element];
    }
    shared[i] = value;
  }
}

}  // namespace sweep::cuda
