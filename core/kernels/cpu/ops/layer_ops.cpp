#include "core/kernels/cpu/ops/layer_ops.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/kernels/cpu/kernels/layer_kernels.h"

namespace sweep::cpu {
namespace {

// Removes the gradient of what a fused ReLU has made zero.
void undo_relu(const BackwardBuffers& buffers, std::size_t floats) {
  activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, floats, buffers.grad_out);
}

class LinearOp final : public Op {
 public:
  LinearOp(const Network& network, const Layer& layer, bool relu)
      : Op(layer), relu_(relu), weight_(network.parameters()[layer.parameters[0]]) {
    bias_offset_ = linear_panels(out_elements()) * in_elements() * kLanes;
    if (layer.parameters.size() > 1) bias_ = network.parameters()[layer.parameters[1]];
  }

  std::size_t parameter_floats() const override { return bias_offset_ + round_up_to_cache_line(bias_.count); }
  std::vector<ParameterRun> parameter_runs() const override {
    std::vector<ParameterRun> runs = {{bias_.offset, bias_offset_, bias_.count}};
    for (std::size_t out = 0; out < out_elements(); ++out)
      runs.push_back({weight_.offset + out * in_elements(), linear_weight_place(in_elements(), out),
                      in_elements(), 1, kLanes});
    return runs;
  }
  void forward(const Pass&, const float* parameters, const ForwardBuffers& buffers) const override {
    const float* bias = bias_.count > 0 ? parameters + bias_offset_ : nullptr;
    linear_forward(parameters, bias, in_elements(), out_elements(), relu_, buffers.in, buffers.out);
  }
  void backward(const float* parameters, const BackwardBuffers& buffers) const override {
    if (relu_) undo_relu(buffers, out_elements() * kLanes);
    linear_backward_weights(in_elements(), out_elements(), buffers.in, buffers.grad_out,
                            buffers.grad_parameters,
                            bias_.count > 0 ? buffers.grad_parameters + bias_offset_ : nullptr);
    if (buffers.grad_in != nullptr)
      linear_backward_input(parameters, in_elements(), out_elements(), buffers.grad_out, buffers.grad_in);
  }

 private:
  bool relu_;
  Parameter weight_, bias_;      // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0;  // parameters: weight panels, then bias
};

class SumOp final : public Op {
 public:
  SumOp(const Layer& layer, bool relu) : Op(layer), relu_(relu) {}
  void forward(const Pass&, const float*, const ForwardBuffers& buffers) const override {
    sum_values(buffers.in, buffers.shortcut, out_elements() * kLanes, relu_, buffers.out);
  }
  void backward(const float*, const BackwardBuffers& buffers) const override {
    if (relu_) undo_relu(buffers, out_elements() * kLanes);
  }

 private:
  bool relu_;
};

class ActivationOp final : public Op {
 public:
  explicit ActivationOp(const Layer& layer) : Op(layer), layer_(std::get<layers::Activated>(layer.kind)) {}
  void forward(const Pass&, const float*, const ForwardBuffers& buffers) const override {
    activation_forward(layer_.function, layer_.coefficient, buffers.in, in_elements() * kLanes, buffers.out);
  }
  void backward(const float*, const BackwardBuffers& buffers) const override {
    if (buffers.grad_in != nullptr)
      activation_backward(layer_.function, layer_.coefficient, buffers.grad_out, buffers.in, buffers.out,
                          in_elements() * kLanes, buffers.grad_in);
  }

 private:
  layers::Activated layer_;
};

class DropoutOp final : public Op {
 public:
  DropoutOp(const Layer& layer, std::uint32_t number)
      : Op(layer), number_(number), probability_(std::get<layers::Dropout>(layer.kind).p) {}
  std::size_t saved_floats() const override { return out_elements() * kLanes; }  // the factors
  void forward(const Pass& pass, const float*, const ForwardBuffers& buffers) const override {
    const std::size_t floats = in_elements() * kLanes;
    if (!pass.training || probability_ == 0) {
      std::fill_n(buffers.saved, floats, 1.0f);
      std::copy_n(buffers.in, floats, buffers.out);
      return;
    }
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(pass.seed),
                                           static_cast<std::uint32_t>(pass.seed >> 32)};
    const std::uint32_t use = static_cast<std::uint32_t>(RandomUse::kDropout) << 24 | number_;
    // Dropped if the random integer is below p · 2³²; p = 1 drops everything.
    const auto threshold = static_cast<std::uint64_t>(std::ldexp(probability_, 32));
    const float kept = probability_ < 1 ? static_cast<float>(1 / (1 - probability_)) : 0.0f;
    for (std::size_t element = 0; element < in_elements(); element += 4) {
      const std::size_t count = std::min<std::size_t>(4, in_elements() - element);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const auto random = philox4x32(
            {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(pass.first_image + lane),
             static_cast<std::uint32_t>(pass.step), use},
            key);
        for (std::size_t i = 0; i < count; ++i)
          buffers.saved[(element + i) * kLanes + lane] = random[i] < threshold ? 0.0f : kept;
      }
    }
    for (std::size_t i = 0; i < floats; ++i) buffers.out[i] = buffers.in[i] * buffers.saved[i];
  }
  void backward(const float*, const BackwardBuffers& buffers) const override {
    if (buffers.grad_in == nullptr) return;
    const std::size_t floats = in_elements() * kLanes;
    for (std::size_t i = 0; i < floats; ++i) buffers.grad_in[i] = buffers.grad_out[i] * buffers.saved[i];
  }

 private:
  std::uint32_t number_;
  double probability_;
};

// `window`: nullptr of adaptive pooling.
PoolGeometry geometry_of(const Layer& layer, const layers::Window* window) {
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  PoolGeometry g{};
  g.channels = size(layer.input[0]);
  g.in_height = size(layer.input[1]);
  g.in_width = size(layer.input[2]);
  g.out_height = size(layer.output[1]);
  g.out_width = size(layer.output[2]);
  if (window == nullptr) return g;
  g.kernel_height = size(window->kernel_size[0]);
  g.kernel_width = size(window->kernel_size[1]);
  g.stride_y = size(window->stride[0]);
  g.stride_x = size(window->stride[1]);
  g.pad_y = size(window->padding[0]);
  g.pad_x = size(window->padding[1]);
  return g;
}

Average average_of(const layers::AvgPool2d* pool) {
  if (pool == nullptr) return Average::kAdaptive;
  return pool->count_include_pad ? Average::kWithPadding : Average::kInside;
}

class MaxPoolOp final : public Op {
 public:
  explicit MaxPoolOp(const Layer& layer)
      : Op(layer), geometry_(geometry_of(layer, layer.as<layers::MaxPool2d>())) {}
  std::size_t saved_floats() const override { return out_elements() * kLanes; }  // the argmax of each window
  void forward(const Pass&, const float*, const ForwardBuffers& buffers) const override {
    max_pool_forward(geometry_, buffers.in, buffers.out, buffers.saved);
  }
  void backward(const float*, const BackwardBuffers& buffers) const override {
    if (buffers.grad_in != nullptr)
      max_pool_backward(geometry_, buffers.grad_out, buffers.saved, buffers.grad_in);
  }

 private:
  PoolGeometry geometry_;
};

class AvgPoolOp final : public Op {
 public:
  explicit AvgPoolOp(const Layer& layer)
      : Op(layer),
        geometry_(geometry_of(layer, layer.as<layers::AvgPool2d>())),
        average_(average_of(layer.as<layers::AvgPool2d>())) {}
  void forward(const Pass&, const float*, const ForwardBuffers& buffers) const override {
    avg_pool_forward(geometry_, average_, buffers.in, buffers.out);
  }
  void backward(const float*, const BackwardBuffers& buffers) const override {
    if (buffers.grad_in != nullptr) avg_pool_backward(geometry_, average_, buffers.grad_out, buffers.grad_in);
  }

 private:
  PoolGeometry geometry_;
  Average average_;
};

}  // namespace

std::unique_ptr<Op> make_linear_op(const Network& network, const Layer& layer, bool relu) {
  return std::make_unique<LinearOp>(network, layer, relu);
}
std::unique_ptr<Op> make_sum_op(const Layer& layer, bool relu) {
  return std::make_unique<SumOp>(layer, relu);
}
std::unique_ptr<Op> make_activation_op(const Layer& layer) { return std::make_unique<ActivationOp>(layer); }
std::unique_ptr<Op> make_dropout_op(const Layer& layer, std::uint32_t number) {
  return std::make_unique<DropoutOp>(layer, number);
}
std::unique_ptr<Op> make_max_pool_op(const Layer& layer) { return std::make_unique<MaxPoolOp>(layer); }
std::unique_ptr<Op> make_avg_pool_op(const Layer& layer) { return std::make_unique<AvgPoolOp>(layer); }

}  // namespace sweep::cpu
