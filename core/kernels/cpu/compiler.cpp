// Compiles a network's layers to CPU ops, and fuses neighbours if one op saves passes over memory.
//
//   conv2d + relu + max_pool2d 2×2: one ConvOp. A pooling window is a register tile, so what the
//     convolution gives before pooling is never stored. The ReLU may also come after the pooling.
//   linear, batch_norm2d or residual + relu: one op, which applies the ReLU before it stores the result.
//   flatten: no op, because the array is the same.
//   batch_norm2d next to a conv2d: not fused, but it writes its output with the convolution's zero padding,
//     and its input gradient in the layout that the convolution reads, which saves two copies.
//
// Layers are fused only if nobody else reads the values between them.
#include "core/base/error.h"
#include "core/kernels/cpu/ops/batch_norm_op.h"
#include "core/kernels/cpu/ops/conv_op.h"
#include "core/kernels/cpu/ops/layer_ops.h"
#include "core/kernels/cpu/program.h"

namespace sweep::cpu {
namespace {

// Whether `layer` is 2×2 max pooling with stride 2 and no padding, the kind that ConvOp can fuse.
bool is_2x2_pool(const Layer& layer) {
  const auto* pool = layer.as<layers::MaxPool2d>();
  const auto is = [](const layers::HeightWidth& pair, std::int64_t value) {
    return pair == layers::HeightWidth{value, value};
  };
  return pool != nullptr && is(pool->kernel_size, 2) && is(pool->stride, 2) && is(pool->padding, 0);
}

// Walks the layers in order. make_op() makes an op of a layer and moves next_ past the layers that it fuses.
class Compiler {
 public:
  Compiler(const Network& network, std::size_t max_blocks)
      : network_(network),
        layers_(network.layers()),
        max_blocks_(max_blocks),
        values_(layers_.size()),
        reader_counts_(layers_.size()) {
    for (const Layer& layer : layers_) {
      for (const std::size_t input : layer.inputs) {
        if (input != kNetworkInput) ++reader_counts_[input];
      }
    }
  }

  std::vector<CompiledOp> compile() {
    while (next_ < layers_.size()) {
      const std::size_t first = next_++;
      const Layer& layer = layers_[first];
      const std::size_t in = value_of(layer.inputs[0]);
      CompiledOp compiled{nullptr, in, kNoShortcut, first};
      if (layer.inputs.size() > 1) compiled.shortcut = value_of(layer.inputs[1]);
      compiled.op = std::visit([&](const auto& kind) { return make_op(layer, kind, compiled); }, layer.kind);
      if (compiled.op == nullptr) {
        values_[first] = in;
        continue;
      }
      // The op's output stands for all fused layers; only the last of them has other readers.
      for (std::size_t i = first; i < next_; ++i) values_[i] = ops_.size();
      ops_.push_back(std::move(compiled));
    }
    if (ops_.empty()) throw ConfigError("network \"" + network_.name() + "\" has nothing to train");
    return std::move(ops_);
  }

 private:
  std::size_t value_of(std::size_t layer) const {
    return layer == kNetworkInput ? kNetworkInput : values_[layer];
  }

  // Whether the next layer is the only reader of the output of the layer before it.
  bool next_is_only_reader() const {
    return next_ < layers_.size() && layers_[next_].inputs.size() == 1 &&
           layers_[next_].inputs[0] == next_ - 1 && reader_counts_[next_ - 1] == 1;
  }
  // Consumes the next layer if it matches.
  bool fuse_if(bool matches) {
    next_ += matches ? 1 : 0;
    return matches;
  }
  bool fuse_relu() { return fuse_if(next_is_only_reader() && layers_[next_].is_relu()); }
  bool fuse_pool() { return fuse_if(next_is_only_reader() && is_2x2_pool(layers_[next_])); }

  // The op whose output this layer is the only one to read, or nullptr. A convolution copies its input into
  // zero padding and its output gradient into zero borders. If this op is a batch normalization next to it,
  // that writes the array in this layout right away.
  const CompiledOp* read_by_one(const Layer& layer) const {
    const std::size_t value = value_of(layer.inputs[0]);
    return value != kNetworkInput && reader_counts_[layer.inputs[0]] == 1 ? &ops_[value] : nullptr;
  }

  std::unique_ptr<Op> make_op(const Layer& layer, const layers::Conv2d&, CompiledOp& compiled) {
    ConvOp::Fusion fusion;
    fusion.needs_grad_in = compiled.in != kNetworkInput;
    fusion.relu = fuse_relu();
    fusion.pool = ConvOp::can_pool(layer) && fuse_pool();
    // ReLU and maximum commute, so pooling may come before or after the ReLU.
    if (fusion.pool && !fusion.relu) fusion.relu = fuse_relu();
    auto op = std::make_unique<ConvOp>(network_, layer, fusion);
    compiled.conv = op.get();
    const CompiledOp* before = read_by_one(layer);
    if (before != nullptr && before->batch_norm != nullptr) {
      if (const auto layout = op->accept_padded_input()) before->batch_norm->set_output_layout(*layout);
    }
    return op;
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::BatchNorm2d&, CompiledOp& compiled) {
    auto op = std::make_unique<BatchNormOp>(network_, layer, fuse_relu(), max_blocks_);
    compiled.batch_norm = op.get();
    const CompiledOp* before = read_by_one(layer);
    if (before != nullptr && before->conv != nullptr) {
      if (const auto layout = before->conv->accept_padded_gradient()) op->set_gradient_layout(*layout);
    }
    return op;
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::Linear&, CompiledOp&) {
    return std::make_unique<LinearOp>(network_, layer, fuse_relu());
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::Sum&, CompiledOp&) {
    return std::make_unique<SumOp>(layer, fuse_relu());
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::MaxPool2d& pool, CompiledOp&) {
    return std::make_unique<MaxPoolOp>(layer, pool);
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::AvgPool2d& pool, CompiledOp&) {
    return std::make_unique<AvgPoolOp>(layer, &pool,
                                       pool.count_include_pad ? Average::kWithPadding : Average::kInside);
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::AdaptiveAvgPool2d&, CompiledOp&) {
    return std::make_unique<AvgPoolOp>(layer, nullptr, Average::kAdaptive);
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::Dropout& dropout, CompiledOp&) {
    return std::make_unique<DropoutOp>(layer, dropout.p, dropouts_++);
  }
  std::unique_ptr<Op> make_op(const Layer& layer, const layers::Activated& activated, CompiledOp&) {
    return std::make_unique<ActivationOp>(layer, activated);
  }
  // [channels][y][x] and [features] are the same array, so flatten needs no op.
  std::unique_ptr<Op> make_op(const Layer&, const layers::Flatten&, CompiledOp&) { return nullptr; }

  const Network& network_;
  std::span<const Layer> layers_;
  std::size_t max_blocks_;
  std::vector<std::size_t> values_;         // the op whose output is that of each layer
  std::vector<std::size_t> reader_counts_;  // layers that read each layer's output
  std::vector<CompiledOp> ops_;
  std::size_t next_ = 0;
  std::uint32_t dropouts_ = 0;
};

}  // namespace

std::vector<CompiledOp> compile(const Network& network, std::size_t max_blocks) {
  return Compiler(network, max_blocks).compile();
}

}  // namespace sweep::cpu
