// Ops of the layers that stay as they are, except for a following ReLU that some of them fuse (`relu`): what
// is not a convolution or a batch normalization.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/kernels/cpu/kernels/layer_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// Removes the gradient of what a fused ReLU has made zero.
inline void undo_relu(const Buffers& buffers, std::size_t floats) {
  activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, floats, buffers.grad_out);
}

class LinearOp final : public Op {
 public:
  /// `layer` is a linear layer of `network`.
  LinearOp(const Network& network, const Layer& layer, bool relu)
      : Op(layer), relu_(relu), weight_(network.parameters()[layer.parameters[0]]) {
    bias_offset_ = linear_panels(sizes_.out_elements) * sizes_.in_elements * kLanes;
    if (layer.parameters.size() > 1) bias_ = network.parameters()[layer.parameters[1]];
    sizes_.parameter_floats = bias_offset_ + round_up_to_cache_line(bias_.count);
    sizes_.begins_sum = true;
  }

  std::vector<ParameterRun> parameter_runs() const override {
    const std::size_t in = sizes_.in_elements;
    std::vector<ParameterRun> runs = {{bias_.offset, bias_offset_, bias_.count}};
    for (std::size_t out = 0; out < sizes_.out_elements; ++out)
      runs.push_back({weight_.offset + out * in, linear_weight_place(in, out), in, 1, kLanes});
    return runs;
  }
  void forward(const Pass& pass, const float* parameters, const Buffers& buffers) const override {
    forward_all(pass, parameters, {&buffers, 1});
  }
  void backward(const float* parameters, const Buffers& buffers) const override {
    backward_all(parameters, {&buffers, 1});
  }
  void forward_all(const Pass&, const float* parameters, std::span<const Buffers> blocks) const override {
    const float* bias = bias_.count > 0 ? parameters + bias_offset_ : nullptr;
    const auto arrays = arrays_of(blocks);
    linear_forward(parameters, bias, sizes_.in_elements, sizes_.out_elements, relu_,
                   std::span(arrays).first(blocks.size()));
  }
  void backward_all(const float* parameters, std::span<const Buffers> blocks) const override {
    const std::size_t in = sizes_.in_elements, out = sizes_.out_elements;
    float* grad_parameters = blocks[0].grad_parameters;
    float* grad_bias = bias_.count > 0 ? grad_parameters + bias_offset_ : nullptr;
    for (const Buffers& block : blocks) {
      if (relu_) undo_relu(block, sizes_.out_floats);
    }
    const auto all = arrays_of(blocks);
    const LinearBlocks arrays = std::span(all).first(blocks.size());
    linear_backward_weights(in, out, arrays, !blocks[0].is_first, grad_parameters, grad_bias);
    if (blocks[0].grad_in != nullptr) linear_backward_input(parameters, in, out, arrays);
  }

 private:
  static std::array<LinearBlock, kMaxBlocksAtOnce> arrays_of(std::span<const Buffers> blocks) {
    std::array<LinearBlock, kMaxBlocksAtOnce> arrays;
    std::ranges::transform(blocks, arrays.begin(), [](const Buffers& b) {
      return LinearBlock{b.in, b.out, b.grad_out, b.grad_in, b.images};
    });
    return arrays;
  }

  bool relu_;
  Parameter weight_, bias_;      // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0;  // parameters: weight panels, then bias
};

/// The sum of two values. backward() leaves in grad_out what is the gradient of both.
class SumOp final : public Op {
 public:
  SumOp(const Layer& layer, bool relu) : Op(layer), relu_(relu) {}
  void forward(const Pass&, const float*, const Buffers& buffers) const override {
    sum_values(buffers.in, buffers.shortcut, sizes_.out_floats, relu_, buffers.out);
  }
  void backward(const float*, const Buffers& buffers) const override {
    if (relu_) undo_relu(buffers, sizes_.out_floats);
  }

 private:
  bool relu_;
};

/// An activation function that no other op has fused.
class ActivationOp final : public Op {
 public:
  ActivationOp(const Layer& layer, const layers::Activated& activated) : Op(layer), layer_(activated) {}
  void forward(const Pass&, const float*, const Buffers& buffers) const override {
    activation_forward(layer_.function, layer_.coefficient, buffers.in, sizes_.out_floats, buffers.out);
  }
  void backward(const float*, const Buffers& buffers) const override {
    if (buffers.grad_in != nullptr)
      activation_backward(layer_.function, layer_.coefficient, buffers.grad_out, buffers.in, buffers.out,
                          sizes_.out_floats, buffers.grad_in);
  }

 private:
  layers::Activated layer_;
};

/// torch.nn.Dropout: while training, zeroes each element with probability p and scales the others by 1 / (1 −
/// p). Which ones depends on (seed, layer, step, image in the batch, element) alone. `number` tells the
/// dropout layers of a network apart.
class DropoutOp final : public Op {
 public:
  DropoutOp(const Layer& layer, double probability, std::uint32_t number)
      : Op(layer), number_(number), probability_(probability) {
    sizes_.saved_floats = sizes_.out_floats;  // the factors
  }
  void forward(const Pass& pass, const float*, const Buffers& buffers) const override {
    const std::size_t floats = sizes_.out_floats;
    if (!pass.training || probability_ == 0) {
      std::fill_n(buffers.saved, floats, 1.0f);
      std::copy_n(buffers.in, floats, buffers.out);
      return;
    }
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(pass.seed),
                                           static_cast<std::uint32_t>(pass.seed >> 32)};
    const std::uint32_t use = static_cast<std::uint32_t>(RandomUse::kDropout) << 24 | number_;
    // Dropped if the random integer is below p · 2³²; p = 1 drops everything, because `kept` is 0.
    const double threshold = std::min(std::ldexp(probability_, 32), 0x1p32 - 1);
    const float kept = probability_ < 1 ? static_cast<float>(1 / (1 - probability_)) : 0.0f;
    dropout_factors({key, static_cast<std::uint32_t>(buffers.first_image),
                     static_cast<std::uint32_t>(pass.step), use, static_cast<std::uint32_t>(threshold), kept},
                    sizes_.in_elements, buffers.saved);
    for (std::size_t i = 0; i < floats; ++i) buffers.out[i] = buffers.in[i] * buffers.saved[i];
  }
  void backward(const float*, const Buffers& buffers) const override {
    if (buffers.grad_in == nullptr) return;
    for (std::size_t i = 0; i < sizes_.out_floats; ++i)
      buffers.grad_in[i] = buffers.grad_out[i] * buffers.saved[i];
  }

 private:
  std::uint32_t number_;
  double probability_;
};

/// `window`: nullptr of adaptive pooling.
inline PoolGeometry geometry_of(const Layer& layer, const layers::Window* window) {
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  const Shape &in = layer.input, &out = layer.output;
  PoolGeometry g{size(in[0]), size(in[1]), size(in[2]), size(out[1]), size(out[2]), 0, 0, 0, 0, 0, 0};
  if (window == nullptr) return g;
  g.kernel_height = size(window->kernel_size[0]);
  g.kernel_width = size(window->kernel_size[1]);
  g.stride_y = size(window->stride[0]);
  g.stride_x = size(window->stride[1]);
  g.pad_y = size(window->padding[0]);
  g.pad_x = size(window->padding[1]);
  return g;
}

/// max_pool2d that no convolution has fused.
class MaxPoolOp final : public Op {
 public:
  MaxPoolOp(const Layer& layer, const layers::Window& window)
      : Op(layer), geometry_(geometry_of(layer, &window)) {
    sizes_.saved_floats = sizes_.out_floats;  // the argmax of each window
  }
  void forward(const Pass&, const float*, const Buffers& buffers) const override {
    max_pool_forward(geometry_, buffers.in, buffers.out, buffers.saved);
  }
  void backward(const float*, const Buffers& buffers) const override {
    if (buffers.grad_in != nullptr)
      max_pool_backward(geometry_, buffers.grad_out, buffers.saved, buffers.grad_in);
  }

 private:
  PoolGeometry geometry_;
};

/// avg_pool2d, and adaptive_avg_pool2d, which has no `window`.
class AvgPoolOp final : public Op {
 public:
  AvgPoolOp(const Layer& layer, const layers::Window* window, Average average)
      : Op(layer), geometry_(geometry_of(layer, window)), average_(average) {}
  void forward(const Pass&, const float*, const Buffers& buffers) const override {
    avg_pool_forward(geometry_, average_, buffers.in, buffers.out);
  }
  void backward(const float*, const Buffers& buffers) const override {
    if (buffers.grad_in != nullptr) avg_pool_backward(geometry_, average_, buffers.grad_out, buffers.grad_in);
  }

 private:
  PoolGeometry geometry_;
  Average average_;
};

}  // namespace sweep::cpu
