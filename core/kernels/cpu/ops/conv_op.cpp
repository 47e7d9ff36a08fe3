#include "core/kernels/cpu/ops/conv_op.h"

#include <algorithm>

namespace sweep::cpu {
namespace {

std::size_t extent(const Shape& shape, std::size_t axis) { return static_cast<std::size_t>(shape[axis]); }

std::size_t fused_elements(const Layer& layer, const ConvOp::Fusion& fusion) {
  if (!fusion.pool) return element_count(layer.output);
  return extent(layer.output, 0) * (extent(layer.output, 1) / 2) * (extent(layer.output, 2) / 2);
}

// From the first to the last tap of a kernel along an axis.
std::size_t reach(std::size_t kernel, std::size_t dilation) { return (kernel - 1) * dilation; }

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

// Rows and columns of pixels; the image is in the first of their 16 lanes. pitch: from row to row.
struct Plane {
  std::size_t height, width, pitch;
};

// Copies patches of a plane to the lanes. The patch in row r and column c begins at pixel (r · step_y −
// before_y, c · step_x − before_x), and has height × width pixels; those outside of the plane are zero.
struct Cut {
  std::size_t columns, step_y, step_x, before_y, before_x, height, width;

  void operator()(const float* from, const Plane& plane, float* to) const {
    std::fill_n(to, height * width * kLanes, 0.0f);
    const auto inside = [](std::size_t begin, std::size_t before, std::size_t size, std::size_t extent) {
      const std::size_t end = extent + before > begin ? extent + before - begin : 0;
      return std::pair(before > begin ? before - begin : 0, std::min(size, end));
    };
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t y0 = lane / columns * step_y, x0 = lane % columns * step_x;
      const auto rows = inside(y0, before_y, height, plane.height);
      const auto pixels = inside(x0, before_x, width, plane.width);
      for (std::size_t y = rows.first; y < rows.second; ++y) {
        const float* row = from + (y0 + y - before_y) * plane.pitch * kLanes;
        for (std::size_t x = pixels.first; x < pixels.second; ++x)
          to[(y * width + x) * kLanes + lane] = row[(x0 + x - before_x) * kLanes];
      }
    }
  }
};

}  // namespace

bool ConvOp::can_pool(const Layer& layer) {
  const auto& conv = std::get<layers::Conv2d>(layer.kind);
  return conv.dilation == layers::HeightWidth{1, 1} && conv.groups == 1;
}

ConvOp::ConvOp(const Network& network, const Layer& layer, Fusion fusion)
    : Op(OpSizes(element_count(layer.input), fused_elements(layer, fusion))), fusion_(fusion) {
  const auto& conv = std::get<layers::Conv2d>(layer.kind);
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  groups_ = size(conv.groups);
  const std::size_t pad_y = size(conv.padding[0]), pad_x = size(conv.padding[1]);
  geometry_ = {extent(layer.input, 0) / groups_,
               extent(layer.input, 1) + 2 * pad_y,
               extent(layer.input, 2) + 2 * pad_x,
               extent(layer.output, 0) / groups_,
               extent(layer.output, 1),
               extent(layer.output, 2),
               size(conv.kernel_size[0]),
               size(conv.kernel_size[1]),
               size(conv.stride[0]),
               size(conv.stride[1]),
               size(conv.dilation[0]),
               size(conv.dilation[1]),
               0,
               pad_y,
               pad_x};
  const std::size_t pixels = geometry_.in_height * geometry_.in_width;
  geometry_.in_plane = (padded() ? conflict_free_stride(pixels) : pixels) * kLanes;
  weight_ = network.parameters()[layer.parameters[0]];
  bias_offset_ = round_up_to_cache_line(weight_.count);
  if (layer.parameters.size() > 1) bias_ = network.parameters()[layer.parameters[1]];
  sizes_.parameter_floats = bias_offset_ + round_up_to_cache_line(bias_.count);
  winograd_ = !fusion_.pool && use_winograd(geometry_);
  winograd_rows_ = fusion_.pool && use_winograd_rows(geometry_);
  packed_floats_ = weight_floats();
  if (winograd_) {
    packed_floats_ = winograd_weight_floats(geometry_);
    sizes_.scratch_floats = winograd_scratch_floats(geometry_);
  } else if (winograd_rows_) {
    packed_floats_ = winograd_rows_weight_floats(geometry_);
    sizes_.scratch_floats = winograd_rows_scratch_floats(geometry_);
  }
  packed_ = AlignedBuffer(groups_ * packed_floats_);
  // conv_pool_backward() reads the weights themselves.
  if (fusion_.needs_grad_in && !fusion_.pool) packed_transposed_ = AlignedBuffer(groups_ * packed_floats_);

  const std::size_t border = fusion_.needs_grad_in ? kGradientBorder : 0;
  const bool gaps = geometry_.dilation_y > 1 || geometry_.dilation_x > 1;
  const std::size_t gap_y = gaps ? geometry_.stride_y : 1, gap_x = gaps ? geometry_.stride_x : 1;
  gradient_layout_ = {nullptr,
                      (geometry_.out_height - 1) * gap_y + 1,
                      (geometry_.out_width - 1) * gap_x + 1 + 2 * border,
                      border,
                      gap_y,
                      gap_x};
  if (fusion_.pool) pool_plan_.emplace(geometry_, fusion_.needs_grad_in);
  assign_offsets();
  if (!fusion_.pool && !winograd_) plan_patches();
}

// The planes of an image from its patches: each value to the first `lanes` lanes of its pixel, zero to the
// others.
void ConvOp::Patches::join(const float* from, const std::array<std::size_t, 3>& planes, std::size_t lanes,
                           float* to) const {
  for (std::size_t c = 0; c < planes[0]; ++c) {
    for (std::size_t y = 0; y < planes[1]; ++y) {
      const float* row = from + ((c * height + y % height) * width * kLanes) + y / height * columns;
      for (std::size_t x = 0; x < planes[2]; ++row) {  // the patches from left to right
        for (std::size_t i = 0; i < width && x < planes[2]; ++i, ++x, to += kLanes) {
          std::fill_n(to, lanes, row[i * kLanes]);
          std::fill_n(to + lanes, kLanes - lanes, 0.0f);
        }
      }
    }
  }
}

// Tiles have 4 pixels of a row. Of patches with as few tiles, those that overlap least.
ConvOp::Patches ConvOp::patches_of(const ConvGeometry& g, std::size_t height, std::size_t width,
                                   std::size_t step_y, std::size_t step_x) {
  const auto cost = [&g](const Patches& p) {
    return std::pair(p.height * round_up(p.width, 4), (p.height + reach(g.kernel_height, g.dilation_y)) *
                                                          (p.width + reach(g.kernel_width, g.dilation_x)));
  };
  std::optional<Patches> best;
  for (std::size_t rows = 1; rows <= kLanes; rows *= 2) {
    const std::size_t columns = kLanes / rows;
    const Patches patches{columns, round_up(height, rows * step_y) / rows,
                          round_up(width, columns * step_x) / columns};
    if (!best || cost(patches) < cost(*best)) best = patches;
  }
  return *best;
}

void ConvOp::plan_patches() {
  const ConvGeometry& g = geometry_;
  out_patches_ = patches_of(g, g.out_height, g.out_width, 1, 1);
  has_patches_ =
      2 * out_patches_.height * round_up(out_patches_.width, 4) <= g.out_height * round_up(g.out_width, 4);
  if (!has_patches_) return;
  const std::size_t reach_y = reach(g.kernel_height, g.dilation_y),
                    reach_x = reach(g.kernel_width, g.dilation_x);
  out_patch_ = g;
  out_patch_.out_height = out_patches_.height;
  out_patch_.out_width = out_patches_.width;
  out_patch_.in_height = (out_patches_.height - 1) * g.stride_y + reach_y + 1;
  out_patch_.in_width = (out_patches_.width - 1) * g.stride_x + reach_x + 1;
  out_patch_.in_plane = out_patch_.in_height * out_patch_.in_width * kLanes;
  const auto floats = [](const Patches& patches) { return patches.height * patches.width * kLanes; };
  sizes_.scratch_floats =
      std::max(g.in_channels * out_patch_.in_plane + g.out_channels * floats(out_patches_),
               conv_weights_scratch_floats(g));
  if (!fusion_.needs_grad_in) return;
  const ConvGradient& whole = gradient_layout_;
  const std::size_t step_y = g.stride_y / whole.gap_y, step_x = g.stride_x / whole.gap_x;
  in_patches_ = patches_of(g, g.height(), g.width(), step_y, step_x);
  // So much padding that all taps of a patch's pixels meet its gradient.
  const auto padding = [](std::size_t pad, std::size_t least, std::size_t step) {
    return pad + round_up(least > pad ? least - pad : 0, step);
  };
  in_patch_ = g;
  in_patch_.pad_y = padding(g.pad_y, reach_y, step_y);
  in_patch_.pad_x = padding(g.pad_x, reach_x, step_x);
  in_patch_.in_height = in_patches_.height + 2 * in_patch_.pad_y;
  in_patch_.in_width = in_patches_.width + 2 * in_patch_.pad_x;
  patch_gradient_ = {nullptr,
                     (in_patches_.height - 1 + in_patch_.pad_y) / step_y + 1,
                     (in_patches_.width - 1 + in_patch_.pad_x) / step_x + 1,
                     0,
                     whole.gap_y,
                     whole.gap_x};
  sizes_.scratch_floats =
      std::max(sizes_.scratch_floats, g.out_channels * patch_gradient_.channel_floats() +
                                          kGradientBorder * kLanes + g.in_channels * floats(in_patches_));
}

void ConvOp::forward_patches(const float* in, const float* packed, const float* bias, float* scratch,
                             float* out) const {
  const ConvGeometry &g = geometry_, &patch = out_patch_;
  const Cut cut{out_patches_.columns,
                patch.out_height * g.stride_y,
                patch.out_width * g.stride_x,
                0,
                0,
                patch.in_height,
                patch.in_width};
  for (std::size_t c = 0; c < g.in_channels; ++c)
    cut(in + c * g.in_plane, {g.in_height, g.in_width, g.in_width}, scratch + c * patch.in_plane);
  float* results = scratch + g.in_channels * patch.in_plane;
  conv_forward(patch, scratch, packed, bias, fusion_.relu, results);
  out_patches_.join(results, {g.out_channels, g.out_height, g.out_width}, kLanes, out);
}

void ConvOp::backward_patches(const ConvGradient& gradient, const float* packed, float* scratch,
                              float* grad_in) const {
  const ConvGeometry &g = geometry_, &patch = in_patch_;
  const std::size_t step_y = g.stride_y / gradient.gap_y, step_x = g.stride_x / gradient.gap_x;
  const Cut cut{in_patches_.columns,
                in_patches_.height / step_y,
                in_patches_.width / step_x,
                (patch.pad_y - g.pad_y) / step_y,
                (patch.pad_x - g.pad_x) / step_x,
                patch_gradient_.rows,
                patch_gradient_.pitch};
  const Plane plane{gradient.rows, gradient.pitch - 2 * gradient.border, gradient.pitch};
  for (std::size_t c = 0; c < g.out_channels; ++c)
    cut(gradient.data + c * gradient.channel_floats() + gradient.border * kLanes, plane,
        scratch + c * patch_gradient_.channel_floats());
  ConvGradient parts = patch_gradient_;
  parts.data = scratch;
  float* results = scratch + g.out_channels * parts.channel_floats() + kGradientBorder * kLanes;
  conv_backward_input(patch, parts, packed, results);
  in_patches_.join(results, {g.in_channels, g.height(), g.width()}, 1, grad_in);
}

void ConvOp::assign_offsets() {
  std::size_t end = padded() && !input_is_padded_ ? groups_ * geometry_.in_channels * geometry_.in_plane : 0;
  argmax_offset_ = end;
  if (fusion_.pool) end += sizes_.out_floats;
  gradient_offset_ = round_up_to_cache_line(end);
  const std::size_t padded_gradient =
      gradient_is_padded_ ? 0 : geometry_.out_channels * gradient_layout_.channel_floats();
  sizes_.saved_floats = gradient_offset_ + (fusion_.pool ? pool_plan_->scratch_floats : padded_gradient);
}

std::optional<ImageLayout> ConvOp::accept_padded_input() {
  if (!padded()) return std::nullopt;
  input_is_padded_ = true;
  assign_offsets();
  const ConvGeometry& g = geometry_;
  return ImageLayout{groups_ * g.in_channels, g.height(), g.width(),
                     g.in_plane / kLanes,     g.in_width, g.pad_y * g.in_width + g.pad_x};
}

std::optional<ImageLayout> ConvOp::accept_padded_gradient() {
  if (fusion_.pool || fusion_.relu || gradient_layout_.gap_y > 1 || gradient_layout_.gap_x > 1)
    return std::nullopt;
  gradient_is_padded_ = true;
  assign_offsets();
  const ConvGradient& l = gradient_layout_;
  sizes_.grad_out_floats = groups_ * geometry_.out_channels * l.channel_floats();
  return ImageLayout{groups_ * geometry_.out_channels,
                     geometry_.out_height,
                     geometry_.out_width,
                     l.channel_floats() / kLanes,
                     l.pitch,
                     l.border,
                     l.border};
}

std::vector<ParameterRun> ConvOp::parameter_runs() const {
  std::vector<ParameterRun> runs = {{bias_.offset, bias_offset_, bias_.count}};
  const std::size_t in = geometry_.in_channels, taps = geometry_.taps();
  for (std::size_t row = 0; row < groups_ * geometry_.out_channels * taps; ++row)  // output and tap
    runs.push_back({weight_.offset + row / taps * in * taps + row % taps, row * in, in, taps});
  return runs;
}

void ConvOp::prepare(const float* parameters) {
  for (std::size_t group = 0; group < groups_; ++group) {
    const float* weights = parameters + group * weight_floats();
    for (AlignedBuffer* buffer : {&packed_, &packed_transposed_}) {
      if (buffer->size() == 0) continue;  // nobody needs it
      const bool transposed = buffer == &packed_transposed_;
      float* packed = buffer->data() + group * packed_floats_;
      if (winograd_) {
        winograd_transform_weights(geometry_, weights, transposed, packed);
      } else if (winograd_rows_) {
        winograd_rows_transform_weights(geometry_, weights, packed);
      } else {
        pack_conv_weights(geometry_, weights, transposed, packed);
      }
    }
  }
}

void ConvOp::forward(const Pass& /*pass*/, const float* parameters, const Buffers& buffers) const {
  const ConvGeometry& g = geometry_;
  if (padded() && !input_is_padded_) {  // `saved` was zero at first, and only the interior is ever written.
    const std::size_t height = g.height(), row = g.width() * kLanes;
    for (std::size_t c = 0; c < groups_ * g.in_channels; ++c) {
      for (std::size_t y = 0; y < height; ++y)
        std::copy_n(buffers.in + (c * height + y) * row, row,
                    buffers.saved + c * g.in_plane + ((y + g.pad_y) * g.in_width + g.pad_x) * kLanes);
    }
  }
  float* argmax = buffers.saved + argmax_offset_;
  for (std::size_t group = 0; group < groups_; ++group) {
    const float* in = padded_input(buffers) + group * g.in_channels * g.in_plane;
    const float* packed = packed_.data() + group * packed_floats_;
    const float* bias = bias_.count > 0 ? parameters + bias_offset_ + group * g.out_channels : nullptr;
    float* out = buffers.out + group * g.out_channels * g.out_height * g.out_width * kLanes;
    if (winograd_) {
      winograd_forward(g, in, packed, bias, fusion_.relu, out, buffers.scratch);
    } else if (has_patches_ && buffers.images == 1) {
      forward_patches(in, packed, bias, buffers.scratch, out);
    } else if (!fusion_.pool) {
      conv_forward(g, in, packed, bias, fusion_.relu, out);
    } else if (winograd_rows_) {  // With pooling there is only one group; see can_pool().
      winograd_rows_pool_forward(g, in, packed, bias, fusion_.relu, out, argmax, buffers.scratch);
    } else {
      conv_pool_forward(g, in, packed, bias, fusion_.relu, out, argmax);
    }
  }
}

void ConvOp::backward(const float* parameters, const Buffers& buffers) const {
  const ConvGeometry& g = geometry_;
  const float* input = padded_input(buffers);
  float* workspace = buffers.saved + gradient_offset_;
  float* grad_bias = bias_.count > 0 ? buffers.grad_parameters + bias_offset_ : nullptr;
  if (fusion_.pool) {
    conv_pool_backward(*pool_plan_,
                       {input, parameters, buffers.grad_out, buffers.saved + argmax_offset_,
                        buffers.grad_parameters, grad_bias, buffers.grad_in},
                       workspace);
    return;
  }
  ConvGradient gradient = gradient_layout_;
  gradient.data = workspace;
  // Groups share the working memory, so a group is finished before the next one starts.
  for (std::size_t group = 0; group < groups_; ++group) {
    if (gradient_is_padded_) {
      gradient.data = buffers.grad_out + group * g.out_channels * gradient.channel_floats();
    } else {
      const std::size_t out = group * g.out_channels * g.out_height * g.out_width * kLanes;
      pad_gradient(g, buffers.grad_out + out, fusion_.relu ? buffers.out + out : nullptr, gradient,
                   workspace);
    }
    const float* in = input + group * g.in_channels * g.in_plane;
    float* grad_weights = buffers.grad_parameters + group * weight_floats();
    const bool is_alone = has_patches_ && buffers.images == 1;
    if (winograd_) {
      winograd_backward_weights(g, in, gradient, grad_weights, buffers.scratch);
    } else if (is_alone && g.out_channels > 1) {
      conv_backward_weights_of_one(g, in, gradient, buffers.scratch, grad_weights);
    } else {
      conv_backward_weights(g, in, gradient, grad_weights);
    }
    if (grad_bias != nullptr) conv_backward_bias(g, gradient, grad_bias + group * g.out_channels);
    if (buffers.grad_in == nullptr) continue;
    float* grad_in = buffers.grad_in + group * g.in_channels * g.height() * g.width() * kLanes;
    const float* packed = packed_transposed_.data() + group * packed_floats_;
    if (winograd_) {
      winograd_backward_input(g, gradient, packed, grad_in, buffers.scratch);
    } else if (is_alone) {
      backward_patches(gradient, packed, buffers.scratch, grad_in);
    } else {
      conv_backward_input(g, gradient, packed, grad_in);
    }
  }
}

}  // namespace sweep::cpu
