#include "core/kernels/cpu/ops/conv_op.h"

#include <algorithm>

namespace sweep::cpu {
namespace {

std::size_t extent(const Shape& shape, std::size_t axis) { return static_cast<std::size_t>(shape[axis]); }

std::size_t fused_elements(const Layer& layer, const ConvOp::Fusion& fusion) {
  if (!fusion.pool) return element_count(layer.output);
  return extent(layer.output, 0) * (extent(layer.output, 1) / 2) * (extent(layer.output, 2) / 2);
}

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
  reach_y_ = (geometry_.kernel_height - 1) * geometry_.dilation_y;
  reach_x_ = (geometry_.kernel_width - 1) * geometry_.dilation_x;
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
  } else if (winograd_rows_) {
    packed_floats_ = winograd_rows_weight_floats(geometry_);
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
  sizes_.scratch_floats = kernel_scratch_floats() + patch_scratch_floats();
}

std::size_t ConvOp::kernel_scratch_floats() const {
  if (winograd_) return winograd_scratch_floats(geometry_);
  return winograd_rows_ ? winograd_rows_scratch_floats(geometry_) : 0;
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
    // With pooling there is only one group; see can_pool().
    if (!forward_patches(buffers.images, in, packed, bias, out, argmax, buffers.scratch))
      run_forward(g, in, packed, bias, out, argmax, buffers.scratch);
  }
}

void ConvOp::run_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                         float* out, float* argmax, float* scratch) const {
  const bool relu = fusion_.relu;
  if (winograd_) {
    winograd_forward(g, in, packed, bias, relu, out, scratch);
  } else if (!fusion_.pool) {
    conv_forward(g, in, packed, bias, relu, out);
  } else if (winograd_rows_) {
    winograd_rows_pool_forward(g, in, packed, bias, relu, out, argmax, scratch);
  } else {
    conv_pool_forward(g, in, packed, bias, relu, out, argmax);
  }
}

void ConvOp::run_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                                float* grad_in, float* scratch) const {
  if (winograd_) {
    winograd_backward_input(g, gradient, packed, grad_in, scratch);
  } else {
    conv_backward_input(g, gradient, packed, grad_in);
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
    if (winograd_) {
      winograd_backward_weights(g, in, gradient, buffers.images, grad_weights, buffers.scratch);
    } else if (buffers.images <= few_images()) {
      conv_backward_weights_of_few(g, in, gradient, buffers.images, buffers.scratch, grad_weights);
    } else {
      conv_backward_weights(g, in, gradient, grad_weights);
    }
    if (grad_bias != nullptr) conv_backward_bias(g, gradient, grad_bias + group * g.out_channels);
    if (buffers.grad_in == nullptr) continue;
    float* grad_in = buffers.grad_in + group * g.in_channels * g.height() * g.width() * kLanes;
    const float* packed = packed_transposed_.data() + group * packed_floats_;
    if (!backward_patches(buffers.images, gradient, packed, grad_in, buffers.scratch))
      run_backward_input(g, gradient, packed, grad_in, buffers.scratch);
  }
}

}  // namespace sweep::cpu
