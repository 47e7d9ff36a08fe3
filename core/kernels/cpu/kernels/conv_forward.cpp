// Forward convolution, the gradient of its input, and the packing of weights for both.
//
// A register tile computes kChannels output channels × 4 positions for one vector of images. All its sums are
// in registers from the first tap to the last; the loops over input channels and kernel positions are
// outside, the 4 · kChannels multiply-adds inside and unrolled. Tiles of the output, a plain one and one with
// pooling, and of the input's gradient differ only in which positions they take and in what they do with the
// sums.
#include "core/kernels/cpu/kernels/conv_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/conv_forward.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// The taps that a tile sums over, input channels × kernel rows × kernel columns, and
// the strides of its operands.
struct TapWindow {
  std::size_t channels, rows, columns;
  std::size_t in_channel_stride, in_row_stride;  // all strides in floats
  std::size_t weight_channel_stride, weight_row_stride;
  std::size_t in_column_stride, weight_column_stride;
};

// acc[c][p] += Σ weight[tap][c] · in[p][tap] over the window's taps, for c < kChannels and p < 4. in[p]
// points to the input under the first tap of position p.
template <int kChannels>
HWY_INLINE void accumulate_taps(Lanes d, const TapWindow& window, const float* const (&in)[4],
                                const float* weights, Vector (&acc)[kChannels][4]) {
  const std::size_t step = window.in_column_stride, weight_step = window.weight_column_stride;
  for (std::size_t channel = 0; channel < window.channels; ++channel) {
    for (std::size_t row = 0; row < window.rows; ++row) {
      const std::size_t offset = channel * window.in_channel_stride + row * window.in_row_stride;
      const float* w = weights + channel * window.weight_channel_stride + row * window.weight_row_stride;
      const float* p0 = in[0] + offset;
      const float* p1 = in[1] + offset;
      const float* p2 = in[2] + offset;
      const float* p3 = in[3] + offset;
      for (std::size_t column = 0; column < window.columns; ++column) {
        const Vector x[4] = {hn::Load(d, p0), hn::Load(d, p1), hn::Load(d, p2), hn::Load(d, p3)};
        for (int c = 0; c < kChannels; ++c) {
          const Vector weight = hn::Set(d, w[c]);
          for (int p = 0; p < 4; ++p) acc[c][p] = hn::MulAdd(weight, x[p], acc[c][p]);
        }
        w += weight_step;
        p0 += step, p1 += step, p2 += step, p3 += step;
      }
    }
  }
}

// Computes the tile whose positions begin `offsets` floats after `in`, and calls store(acc, lane) with its
// sums for each vector of images, from `lane` on.
template <int kChannels, class Store>
HWY_INLINE void run_tile(const TapWindow& window, const float* in, const std::size_t (&offsets)[4],
                         const float* weights, const float* bias, const Store& store) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const float* positions[4];
    for (std::size_t p = 0; p < 4; ++p) positions[p] = in + offsets[p] + lane;
    Vector acc[kChannels][4];
    for (int c = 0; c < kChannels; ++c) {
      const Vector start = bias == nullptr ? hn::Zero(d) : hn::Set(d, bias[c]);
      for (int p = 0; p < 4; ++p) acc[c][p] = start;
    }
    accumulate_taps<kChannels>(d, window, positions, weights, acc);
    store(acc, lane);
  }
}

HWY_INLINE TapWindow forward_window(const ConvGeometry& g, std::size_t tile_channels) {
  return {g.in_channels,
          g.kernel_height,
          g.kernel_width,
          g.in_plane,
          g.dilation_y * g.in_width * kLanes,
          g.taps() * tile_channels,
          g.kernel_width * tile_channels,
          g.dilation_x * kLanes,
          tile_channels};
}

// A tile without pooling: kChannels output channels × up to 4 neighbouring
// outputs of row y, from column x on.
struct PlainTile {
  template <int kChannels>
  static void run(const ConvGeometry& g, const float* in, const float* weights, const float* bias, bool relu,
                  std::size_t y, std::size_t x, float* out, float* /*argmax*/) {
    const Lanes d;
    const std::size_t count = HWY_MIN(std::size_t{4}, g.out_width - x);
    const std::size_t plane = g.out_height * g.out_width * kLanes;
    std::size_t offsets[4];
    // Positions beyond the end of the row repeat the last one and are not stored.
    for (std::size_t p = 0; p < 4; ++p) {
      const std::size_t column = (x + HWY_MIN(p, count - 1)) * g.stride_x;
      offsets[p] = (y * g.stride_y * g.in_width + column) * kLanes;
    }
    const auto store = [&](const Vector(&acc)[kChannels][4], std::size_t lane) HWY_ATTR {
      for (std::size_t c = 0; c < kChannels; ++c) {
        float* target = out + c * plane + (y * g.out_width + x) * kLanes + lane;
        for (std::size_t p = 0; p < count; ++p) {
          const Vector value = relu ? positive_part(d, acc[c][p]) : acc[c][p];
          hn::Store(value, d, target + p * kLanes);
        }
      }
    };
    run_tile<kChannels>(forward_window(g, kChannels), in, offsets, weights, bias, store);
  }
};

// A tile with pooling: kChannels output channels × the 4 outputs of pooling window (y, x).
struct PooledTile {
  template <int kChannels>
  static void run(const ConvGeometry& g, const float* in, const float* weights, const float* bias, bool relu,
                  std::size_t y, std::size_t x, float* out, float* argmax) {
    const Lanes d;
    const std::size_t pooled_width = g.out_width / 2, plane = (g.out_height / 2) * pooled_width * kLanes;
    const std::size_t corner = (2 * y * g.stride_y * g.in_width + 2 * x * g.stride_x) * kLanes;
    const std::size_t below = corner + g.stride_y * g.in_width * kLanes, right = g.stride_x * kLanes;
    const auto store = [&](const Vector(&acc)[kChannels][4], std::size_t lane) HWY_ATTR {
      for (std::size_t c = 0; c < kChannels; ++c) {
        const std::size_t at = c * plane + (y * pooled_width + x) * kLanes + lane;
        pool_window(d, acc[c], relu, out + at, argmax + at);
      }
    };
    run_tile<kChannels>(forward_window(g, kChannels), in, {corner, corner + right, below, below + right},
                        weights, bias, store);
  }
};

// Runs the tiles of rows × columns positions (outputs or windows), column_step positions per tile. Channels
// are the innermost loop, so that all tiles of a position read the same input from the L1 cache.
template <class Tile>
HWY_INLINE void for_each_tile(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                              bool relu, std::size_t rows, std::size_t columns, std::size_t column_step,
                              float* out, float* argmax) {
  const std::size_t plane = rows * columns * kLanes;
  for (std::size_t y = 0; y < rows; ++y) {
    for (std::size_t x = 0; x < columns; x += column_step) {
      for_each_run<kMaxChannelTile>(g.out_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
        Tile::template run<channels()>(
            g, in, packed + channel * g.in_channels * g.taps(), bias == nullptr ? nullptr : bias + channel,
            relu, y, x, out + channel * plane, argmax == nullptr ? nullptr : argmax + channel * plane);
      });
    }
  }
}

void conv_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias, bool relu,
                  float* out) {
  for_each_tile<PlainTile>(g, in, packed, bias, relu, g.out_height, g.out_width, 4, out, nullptr);
}

void conv_pool_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                       bool relu, float* out, float* argmax) {
  for_each_tile<PooledTile>(g, in, packed, bias, relu, g.out_height / 2, g.out_width / 2, 1, out, argmax);
}

// The gradient of the input. Pixel p of the padded input contributed to output o = (p − k · dilation) /
// stride for each kernel position k for which o is an integer and in range, so its gradient is the sum of
// weight[k] · gradient[o] over those k. AxisTaps are these k of one axis, in increasing order of o, which is
// decreasing order of k: hence the reversed kernel of pack_conv_weights().
struct AxisTaps {
  std::size_t count = 0;
  std::size_t gradient = 0, gradient_step = 0;  // row or column of the padded gradient, without its border
  std::size_t reversed = 0, reversed_step = 0;  // kernel position, counted from the last one
};

// The taps that any of the pixels first, first + step, …, `pixels` of them, needs, with the
// gradient's position for the first pixel; that of the next pixel is one further. `step` is the
// stride, or 1 if the gradient has gaps; dilation may be above 1 only with step 1. `extent`: rows or
// columns of the gradient. Pixels with the same p % step see the same k, k % step = p % step, which
// is why the pixels of a tile are `step` apart.
HWY_INLINE AxisTaps axis_taps(std::size_t kernel, std::size_t dilation, std::size_t step, std::size_t first,
                              std::size_t pixels, std::size_t extent) {
  // The smallest k, and its position in the gradient. Tap t is k = start + t · step, at position − t ·
  // dilation.
  const std::size_t start = first % step, position = first / step;
  if (start >= kernel) return {};
  const std::size_t max_tap = HWY_MIN((kernel - 1 - start) / step, (position + pixels - 1) / dilation);
  const std::size_t min_tap = position < extent ? 0 : (position - extent) / dilation + 1;
  if (min_tap > max_tap) return {};
  // For taps that only later pixels need, the first pixel reads the zero border: position − … wraps around
  // below zero, and adding the border later makes it a valid column.
  return {max_tap - min_tap + 1, position - max_tap * dilation, dilation, kernel - 1 - start - max_tap * step,
          step};
}

// A tile of the input's gradient: kChannels input channels × up to 4 pixels of a row, `step` apart. Taps
// outside of the gradient's rows are left out. Of its columns, all 4 pixels sum over those that any of them
// needs, and read zeros from the border for the others.
template <int kChannels>
HWY_INLINE void store_input_gradients(ConvGeometry g, ConvGradient gradient, const float* weights,
                                      AxisTaps rows, AxisTaps columns, std::size_t step, std::size_t count,
                                      std::size_t plane, float* grad_in) {
  const Lanes d;
  TapWindow window{g.out_channels,
                   rows.count,
                   columns.count,
                   gradient.channel_floats(),
                   rows.gradient_step * gradient.pitch * kLanes,
                   g.taps() * kChannels,
                   rows.reversed_step * g.kernel_width * kChannels,
                   columns.gradient_step * kLanes,
                   columns.reversed_step * kChannels};
  if (window.rows == 0 || window.columns == 0) window.channels = 0;
  const float* first_weight = weights + (rows.reversed * g.kernel_width + columns.reversed) * kChannels;
  std::size_t offsets[4] = {};
  for (std::size_t p = 0; p < 4 && window.channels > 0; ++p)
    offsets[p] = (rows.gradient * gradient.pitch + gradient.border + columns.gradient + p) * kLanes;
  const auto store = [&](const Vector(&acc)[kChannels][4], std::size_t lane) HWY_ATTR {
    for (std::size_t c = 0; c < kChannels; ++c) {
      for (std::size_t p = 0; p < count; ++p)
        hn::Store(acc[c][p], d, grad_in + c * plane + p * step * kLanes + lane);
    }
  };
  run_tile<kChannels>(window, gradient.data, offsets, first_weight, nullptr, store);
}

void conv_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                         float* grad_in) {
  const std::size_t pad_y = g.pad_y, pad_x = g.pad_x, height = g.height(), width = g.width();
  const std::size_t step_y = g.stride_y / gradient.gap_y, step_x = g.stride_x / gradient.gap_x;
  const std::size_t plane = height * width * kLanes, extent = gradient.pitch - 2 * gradient.border;
  for (std::size_t y = 0; y < height; ++y) {
    const AxisTaps rows = axis_taps(g.kernel_height, g.dilation_y, step_y, y + pad_y, 1, gradient.rows);
    for (std::size_t phase = 0; phase < HWY_MIN(step_x, width); ++phase) {
      for (std::size_t x = phase; x < width; x += 4 * step_x) {
        const AxisTaps columns = axis_taps(g.kernel_width, g.dilation_x, step_x, x + pad_x, 4, extent);
        const std::size_t count = HWY_MIN(std::size_t{4}, (width - x + step_x - 1) / step_x);
        for_each_run<kMaxChannelTile>(g.in_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
          store_input_gradients<channels()>(g, gradient, packed + channel * g.out_channels * g.taps(), rows,
                                            columns, step_x, count, plane,
                                            grad_in + channel * plane + (y * width + x) * kLanes);
        });
      }
    }
  }
}

std::size_t conv_channel_tile() { return kMaxChannelTile; }

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(conv_forward);
SWEEP_EXPORT_KERNEL(conv_pool_forward);
SWEEP_EXPORT_KERNEL(conv_backward_input);
SWEEP_EXPORT_KERNEL(conv_channel_tile);

void pack_conv_weights(const ConvGeometry& g, const float* weights, bool transposed, float* packed) {
  const std::size_t taps = g.taps(), tile = conv_channel_tile();
  const std::size_t rows = transposed ? g.in_channels : g.out_channels;
  const std::size_t columns = transposed ? g.out_channels : g.in_channels;
  const std::size_t row_step = transposed ? 1 : taps * g.in_channels;
  const std::size_t column_step = transposed ? taps * g.in_channels : 1;
  const std::size_t tiles = (rows + tile - 1) / tile;
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::size_t begin = part_begin(rows, tiles, t), end = part_begin(rows, tiles, t + 1);
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t at = (transposed ? taps - 1 - tap : tap) * g.in_channels + column * column_step;
        for (std::size_t row = begin; row < end; ++row) *packed++ = weights[at + row * row_step];
      }
    }
  }
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
