#include "core/kernels/cpu/program.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/error.h"
#include "core/kernels/cpu/conv_op.h"
#include "core/kernels/cpu/elementwise_ops.h"
#include "core/kernels/cpu/linear_op.h"
#include "core/kernels/cpu/pool_ops.h"

namespace sweep::cpu {
namespace {

// Adds the time of its life to a sum, if there is one.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Stopwatch(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) begin_ = Clock::now();
  }
  ~Stopwatch() {
    if (seconds_ != nullptr) *seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* seconds_;
  Clock::time_point begin_;
};

double* seconds_of(double* op_seconds, std::size_t op) {
  return op_seconds == nullptr ? nullptr : op_seconds + op;
}

// Whether `layer` is max pooling 2×2 with stride 2 and no padding, which a convolution can do in its
// registers.
bool is_plain_2x2_pool(const Layer& layer) {
  using Pair = std::array<std::int64_t, 2>;
  if (layer.type != "max_pool2d") return false;
  const auto is = [&](const char* name, std::int64_t value) {
    return std::get<Pair>(layer.arguments.at(name)) == Pair{value, value};
  };
  return is("kernel_size", 2) && is("stride", 2) && is("padding", 0);
}

// Takes layers from the front of the network and makes ops of them, fusing where it pays.
class Compiler {
 public:
  explicit Compiler(const Network& network) : network_(network), layers_(network.layers()) {}

  // first_layers: of each op, where its first layer stands in the network.
  std::vector<std::unique_ptr<Op>> compile(std::vector<std::size_t>& first_layers) {
    std::vector<std::unique_ptr<Op>> ops;
    while (next_ < layers_.size()) {
      const std::size_t first = next_;
      const Layer& layer = layers_[next_++];
      // [channels][y][x] and [features] are the same array, so flatten has nothing to do.
      if (layer.type == "flatten") continue;
      ops.push_back(make_op(layer, ops.empty()));
      first_layers.push_back(first);
    }
    if (ops.empty()) throw ConfigError("network \"" + network_.name() + "\" has nothing to train");
    return ops;
  }

 private:
  bool take(bool matches) {
    next_ += matches ? 1 : 0;
    return matches;
  }
  bool take_relu() { return take(next_ < layers_.size() && layers_[next_].type == "relu"); }
  bool take_pool() { return take(next_ < layers_.size() && is_plain_2x2_pool(layers_[next_])); }

  std::unique_ptr<Op> make_op(const Layer& layer, bool first) {
    if (layer.type == "conv2d") {
      ConvOp::Fusion fusion;
      fusion.needs_grad_in = !first;
      fusion.relu = take_relu();
      fusion.pool = take_pool();
      // The maximum of positive parts is the positive part of the maximum, so either order is one op.
      if (fusion.pool && !fusion.relu) fusion.relu = take_relu();
      return std::make_unique<ConvOp>(network_, layer, fusion);
    }
    if (layer.type == "linear") return std::make_unique<LinearOp>(network_, layer, take_relu());
    if (layer.type == "max_pool2d") return std::make_unique<MaxPoolOp>(layer);
    if (layer.type == "avg_pool2d" || layer.type == "adaptive_avg_pool2d")
      return std::make_unique<AvgPoolOp>(layer);
    if (layer.type == "dropout") return std::make_unique<DropoutOp>(layer, dropouts_++);
    if (const auto activation = activation_of(layer.type))
      return std::make_unique<ActivationOp>(layer, *activation);
    throw ConfigError("layer \"" + layer.name + "\": the CPU engine has no " + layer.type);
  }

  const Network& network_;
  std::span<const Layer> layers_;
  std::size_t next_ = 0;
  std::uint32_t dropouts_ = 0;
};

}  // namespace

Program::Program(const Network& network) : input_elements_(element_count(network.input())) {
  ops_ = Compiler(network).compile(first_layers_);
  for (const auto& op : ops_) {
    offsets_.push_back(parameter_floats_);
    parameter_floats_ += op->parameter_floats();
  }
}

Workspace Program::make_workspace() const {
  Workspace workspace;
  workspace.input = AlignedBuffer(input_elements_ * kLanes);
  std::size_t widest = 0;
  for (const auto& op : ops_) {
    workspace.activations.emplace_back(op->out_elements() * kLanes);
    workspace.saved.emplace_back(op->saved_floats());
    widest = std::max({widest, op->in_elements(), op->out_elements()});
  }
  for (AlignedBuffer& gradient : workspace.gradients) gradient = AlignedBuffer(widest * kLanes);
  return workspace;
}

void Program::import_parameters(std::span<const float> all, float* own) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) ops_[i]->import_parameters(all, own + offsets_[i]);
}

void Program::export_parameters(const float* own, std::span<float> all) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) ops_[i]->export_parameters(own + offsets_[i], all);
}

std::size_t Program::block_bytes(std::size_t op) const {
  return (ops_[op]->out_elements() * kLanes + ops_[op]->saved_floats()) * sizeof(float);
}

std::size_t Program::parameter_bytes(std::size_t op) const {
  return ops_[op]->parameter_floats() * sizeof(float);
}

const float* Program::forward(const Pass& pass, const float* own, Workspace& workspace,
                              double* op_seconds) const {
  const float* in = workspace.input.data();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    float* out = workspace.activations[i].data();
    const Stopwatch stopwatch(seconds_of(op_seconds, i));
    ops_[i]->forward(pass, own + offsets_[i], in, workspace.saved[i].data(), out);
    in = out;
  }
  return in;
}

void Program::backward(const float* own, Workspace& workspace, float* grad_own, double* op_seconds) const {
  float* grad_out = workspace.gradients[0].data();
  float* grad_in = workspace.gradients[1].data();
  for (std::size_t i = ops_.size(); i-- > 0;) {
    const float* in = i == 0 ? workspace.input.data() : workspace.activations[i - 1].data();
    const Stopwatch stopwatch(seconds_of(op_seconds, i));
    ops_[i]->backward(own + offsets_[i], {in, workspace.activations[i].data(), workspace.saved[i].data(),
                                          grad_out, i == 0 ? nullptr : grad_in, grad_own + offsets_[i]});
    std::swap(grad_out, grad_in);
  }
}

}  // namespace sweep::cpu
