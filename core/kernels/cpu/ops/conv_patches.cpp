// Convolutions of blocks with few images, cut into patches: see ConvOp.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/kernels/cpu/ops/conv_op.h"

namespace sweep::cpu {
namespace {

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

}  // namespace

// Parts of the planes of `images` images, a power of two: part p of image i is in lane p · images + i, and is
// number p / x.count along y and p % x.count along x.
struct ConvOp::Patches {
  // `count` parts, next to each other, give `size` pixels each and see `in` pixels of what the kernel reads.
  // The first one begins `before` pixels before these, each other one `step` pixels after its neighbour.
  struct Axis {
    std::size_t count, size, in = 0, step = 0, before = 0;

    // The pixels, of those that a part sees, that are inside of `extent`: [first, second).
    std::pair<std::size_t, std::size_t> inside(std::size_t part, std::size_t extent) const {
      const std::size_t begin = part * step, end = extent + before;
      return {before > begin ? before - begin : 0, std::min(in, end > begin ? end - begin : 0)};
    }
  };

  std::size_t images;
  Axis y, x;
  ConvGeometry geometry{};  // of a part
  ConvGradient gradient{};

  std::size_t plane() const { return y.size * x.size * kLanes; }

  // Copies the parts of a plane, zero outside of it. pitch: from row to row.
  template <std::size_t kImages>
  void cut(const float* from, std::size_t rows, std::size_t pixels, std::size_t pitch, float* to) const {
    std::fill_n(to, y.in * x.in * kLanes, 0.0f);
    for (std::size_t part = 0; part < kLanes / kImages; ++part, to += kImages) {
      const auto [first_row, end_row] = y.inside(part / x.count, rows);
      const auto [first_pixel, end_pixel] = x.inside(part % x.count, pixels);
      for (std::size_t row = first_row; row < end_row; ++row) {
        const std::size_t at = (part / x.count * y.step + row - y.before) * pitch;
        for (std::size_t i = first_pixel; i < end_pixel; ++i)
          std::memcpy(to + (row * x.in + i) * kLanes,
                      from + (at + part % x.count * x.step + i - x.before) * kLanes, kImages * sizeof(float));
      }
    }
  }

  // The reverse, to a plane of rows × pixels. Its other lanes are zero.
  template <std::size_t kImages>
  void join(const float* from, std::size_t rows, std::size_t pixels, float* to) const {
    for (std::size_t row = 0; row < rows; ++row) {
      const float* part = from + row % y.size * x.size * kLanes + row / y.size * x.count * kImages;
      for (std::size_t at = 0; at < pixels; part += kImages) {  // the parts from left to right
        for (std::size_t i = 0; i < x.size && at < pixels; ++i, ++at, to += kLanes) {
          std::memcpy(to, part + i * kLanes, kImages * sizeof(float));
          std::fill_n(to + kImages, kLanes - kImages, 0.0f);
        }
      }
    }
  }

  // Calls use(the number of images as a constant).
  template <class Use>
  void with_images(const Use& use) const {
    if (images == 1) use(std::integral_constant<std::size_t, 1>());
    if (images == 2) use(std::integral_constant<std::size_t, 2>());
    if (images == 4) use(std::integral_constant<std::size_t, 4>());
    if (images == 8) use(std::integral_constant<std::size_t, 8>());
  }
};

// Patches of planes of height × width pixels, whose sizes are multiples of a unit; none if they save too
// little. Of those with as many tiles, they overlap least.
std::optional<ConvOp::Patches> ConvOp::patches_of(std::size_t images, std::size_t height, std::size_t width,
                                                  std::size_t unit_y, std::size_t unit_x) const {
  if (images > kFewImages) return std::nullopt;
  const std::size_t tile = std::max<std::size_t>(unit_x, fusion_.pool ? 1 : 4);  // pixels of a row
  const auto cost = [&](const Patches& p) {
    return std::pair(p.y.size * round_up(p.x.size, tile), (p.y.size + reach_y_) * (p.x.size + reach_x_));
  };
  images = std::bit_ceil(images);
  std::optional<Patches> best;
  for (std::size_t rows = 1; rows <= kLanes / images; rows *= 2) {
    const std::size_t columns = kLanes / images / rows;
    const Patches patches{images,
                          {rows, round_up(height, rows * unit_y) / rows},
                          {columns, round_up(width, columns * unit_x) / columns},
                          geometry_};
    if (!best || cost(patches) < cost(*best)) best = patches;
  }
  if (3 * cost(*best).first > 2 * round_up(height, unit_y) * round_up(width, tile)) return std::nullopt;
  return best;
}

// Patches of what forward() writes. All tiles are where they are in the whole planes.
std::optional<ConvOp::Patches> ConvOp::out_patches(std::size_t images) const {
  const ConvGeometry& g = geometry_;
  const std::size_t window = fusion_.pool ? 2 : 1, unit_y = winograd_ ? kWinogradTile : 1;
  auto patches = patches_of(images, g.out_height / window, g.out_width / window, unit_y,
                            winograd_rows_ ? kWinogradTile / window : unit_y);
  if (!patches) return patches;
  const auto see = [&](Patches::Axis& axis, std::size_t stride, std::size_t reach) {
    axis.step = axis.size * window * stride;
    axis.in = axis.step - stride + reach + 1;
  };
  see(patches->y, g.stride_y, reach_y_);
  see(patches->x, g.stride_x, reach_x_);
  ConvGeometry& patch = patches->geometry;
  patch.out_height = patches->y.size * window;
  patch.out_width = patches->x.size * window;
  patch.in_height = patches->y.in;
  patch.in_width = patches->x.in;
  patch.in_plane = patch.in_height * patch.in_width * kLanes;
  return patches;
}

// Patches of the input's gradient.
std::optional<ConvOp::Patches> ConvOp::in_patches(std::size_t images) const {
  const ConvGeometry& g = geometry_;
  const ConvGradient& whole = gradient_layout_;
  const std::size_t step_y = g.stride_y / whole.gap_y, step_x = g.stride_x / whole.gap_x;
  // Winograd's tiles may begin before the first pixel then.
  if (winograd_ && step_y > 1 && (g.pad_y % 2 == 0 || g.pad_x % 2 == 0)) return std::nullopt;
  const std::size_t tile = winograd_ ? kWinogradTile : 1;
  auto patches = patches_of(images, g.height(), g.width(), tile * step_y, tile * step_x);
  if (!patches) return patches;
  // Adds so much padding that all taps of a part's pixels meet its gradient.
  const auto see = [](Patches::Axis& axis, std::size_t step, std::size_t reach, std::size_t& pad) {
    axis.before = round_up(reach > pad ? reach - pad : 0, step) / step;
    pad += axis.before * step;
    axis.in = (axis.size - 1 + pad) / step + 1;
    axis.step = axis.size / step;
  };
  ConvGeometry& patch = patches->geometry;
  see(patches->y, step_y, reach_y_, patch.pad_y);
  see(patches->x, step_x, reach_x_, patch.pad_x);
  patch.in_height = patches->y.size + 2 * patch.pad_y;
  patch.in_width = patches->x.size + 2 * patch.pad_x;
  patches->gradient = {nullptr, patches->y.in, patches->x.in, 0, whole.gap_y, whole.gap_x};
  return patches;
}

std::size_t ConvOp::patch_scratch_floats() const {
  const ConvGeometry& g = geometry_;
  std::size_t floats = fusion_.pool || winograd_ ? 0 : few_images() * conv_weights_scratch_floats(g);
  for (std::size_t images = 1; images <= kFewImages; images *= 2) {
    if (const auto p = out_patches(images))
      floats = std::max(floats, g.in_channels * p->geometry.in_plane +
                                    g.out_channels * p->plane() * (fusion_.pool ? 2 : 1));
    if (fusion_.pool || !fusion_.needs_grad_in) continue;
    if (const auto p = in_patches(images))
      floats = std::max(floats, g.out_channels * p->gradient.channel_floats() + kGradientBorder * kLanes +
                                    g.in_channels * p->plane());
  }
  return floats;
}

bool ConvOp::forward_patches(std::size_t images, const float* in, const float* packed, const float* bias,
                             float* out, float* argmax, float* scratch) const {
  const auto patches = out_patches(images);
  if (!patches) return false;
  const ConvGeometry &g = geometry_, &patch = patches->geometry;
  float* from = scratch + kernel_scratch_floats();
  float* results = from + g.in_channels * patch.in_plane;
  float* windows = results + g.out_channels * patches->plane();
  const std::size_t window = fusion_.pool ? 2 : 1, height = g.out_height / window,
                    width = g.out_width / window;
  patches->with_images([&](auto count) {
    for (std::size_t c = 0; c < g.in_channels; ++c)
      patches->cut<count()>(in + c * g.in_plane, g.in_height, g.in_width, g.in_width,
                            from + c * patch.in_plane);
    run_forward(patch, from, packed, bias, results, windows, scratch);
    for (std::size_t c = 0; c < g.out_channels; ++c) {
      const std::size_t plane = c * height * width * kLanes;
      patches->join<count()>(results + c * patches->plane(), height, width, out + plane);
      if (fusion_.pool) patches->join<count()>(windows + c * patches->plane(), height, width, argmax + plane);
    }
  });
  return true;
}

bool ConvOp::backward_patches(std::size_t images, const ConvGradient& gradient, const float* packed,
                              float* grad_in, float* scratch) const {
  const auto patches = in_patches(images);
  if (!patches) return false;
  const ConvGeometry& g = geometry_;
  ConvGradient parts = patches->gradient;
  float* from = scratch + kernel_scratch_floats();
  float* results = from + g.out_channels * parts.channel_floats() + kGradientBorder * kLanes;
  parts.data = from;
  patches->with_images([&](auto count) {
    for (std::size_t c = 0; c < g.out_channels; ++c) {
      patches->cut<count()>(gradient.data + c * gradient.channel_floats() + gradient.border * kLanes,
                            gradient.rows, gradient.pitch - 2 * gradient.border, gradient.pitch,
                            from + c * parts.channel_floats());
    }
    run_backward_input(patches->geometry, parts, packed, results, scratch);
    for (std::size_t c = 0; c < g.in_channels; ++c)
      patches->join<count()>(results + c * patches->plane(), g.height(), g.width(),
                             grad_in + c * g.height() * g.width() * kLanes);
  });
  return true;
}

}  // namespace sweep::cpu
