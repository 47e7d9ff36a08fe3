#include "core/kernels/cuda/compiler.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/ops/batch_norm_op.h"
#include "core/kernels/cuda/ops/conv_pool_op.h"
#include "core/kernels/cuda/ops/elementwise_ops.h"
#include "core/kernels/cuda/ops/pool_ops.h"
#include "core/kernels/cuda/ops/weight_op.h"

// Moments of a step, in which MemoryPlan counts. With n nodes:
//   0 … n − 1     forward of node i at moment i
//   n             the loss; the head's forward and backward
//   n + 1 … 2n    backward of node i at moment 2n − i
//   2n + 1        the optimizer, which reads the partial gradients of all ops
// An activation is alive from its producer's forward to its last use: the forward of its last consumer, or
// the backward of an op that saves it. A gradient is alive from the backward of the last consumer, which runs
// first and writes it (the other consumers add to it), to the backward of its producer.
namespace sweep::cuda {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 30;  // kernels index with 32 bits

// An activation: the network's input, or a node's output.
struct Value {
  std::size_t elements = 0;  // of one image
  int producer = -1;         // its node; -1: the network's input
  bool needs_gradient = false;
  bool saved_by_producer = false;                        // whether the producer's backward() reads it
  std::vector<std::size_t> consumers = {}, savers = {};  // nodes; savers' backward() reads it, too
  Slot slot = {}, gradient = {};
};

// What becomes one op: a layer; a convolution or linear layer with the relu after it; or one or two
// convolutions with relu and pooling.
struct Node {
  const Layer* layer;
  bool relu = false;
  std::vector<ConvPoolLayers> conv_pools = {};
  std::vector<std::size_t> inputs;  // values; residual layers have two
  std::size_t output = 0;
};

bool is_weighted(const Layer& layer) { return layer.type == "conv2d" || layer.type == "linear"; }

class Compiler {
 public:
  Compiler(const Network& network, int images, std::uint64_t seed, bool joint, KernelAutotuner& autotuner)
      : network_(network), images_(images), seed_(seed), joint_(joint), autotuner_(autotuner) {}

  CompiledNetwork compile() {
    make_nodes();
    if (nodes_.empty()) throw ConfigError("network \"" + network_.name() + "\" has nothing to train");
    describe_values();
    find_head();
    plan_memory();
    for (std::size_t n = 0; n < head_; ++n) compiled_.ops.push_back(make_op(n));
    make_head();
    for (std::size_t n = head_; n-- > 0;) {
      if (has_backward(nodes_[n])) compiled_.backward.push_back(compiled_.ops[n].get());
    }
    compiled_.memory_bytes = compiled_.plan.solve();
    compiled_.kernels = autotuner_.record();
    return std::move(compiled_);
  }

 private:
  // See the table at the top.
  int forward_time(std::size_t node) const { return static_cast<int>(node); }
  int loss_time() const { return static_cast<int>(nodes_.size()); }
  int backward_time(std::size_t node) const { return 2 * loss_time() - static_cast<int>(node); }
  int end_time() const { return 2 * loss_time() + 1; }

  void make_nodes() {
    const auto layers = network_.layers();
    std::vector<int> consumer_count(layers.size());
    for (const Layer& layer : layers) {
      for (const std::size_t input : layer.inputs) {
        if (input != kNetworkInput) ++consumer_count[input];
      }
    }
    values_.push_back({.elements = element_count(network_.input())});
    std::vector<std::size_t> value_of(layers.size());
    const auto value = [&](std::size_t layer) { return layer == kNetworkInput ? 0 : value_of[layer]; };
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      if (layer.type == "flatten") {  // [channels][y][x] and [features] are the same array
        value_of[i] = value(layer.inputs[0]);
        continue;
      }
      Node node{&layer, false, {}, {}, values_.size()};
      for (const std::size_t input : layer.inputs) node.inputs.push_back(value(input));
      value_of[i] = node.output;
      if (is_weighted(layer) && i + 1 < layers.size() && layers[i + 1].type == "relu" &&
          layers[i + 1].inputs[0] == i && consumer_count[i] == 1) {
        node.relu = true;
        value_of[++i] = node.output;
      }
      const Shape* output = &layer.output;
      if (node.relu && i + 1 < layers.size() && layers[i + 1].inputs[0] == i && consumer_count[i] == 1) {
        if (const auto shape = ConvPoolOp::shape_of(layer, layers[i + 1])) {
          node.conv_pools = {{&layer, *shape}};
          value_of[++i] = node.output;
          output = &layers[i].output;
        }
      }
      const std::size_t before = layer.inputs[0];
      if (!node.conv_pools.empty() && before != kNetworkInput && consumer_count[before] == 1 &&
          fuse_with_last(nodes_, node)) {
        value_of[i] = nodes_.back().output;
        values_.back().elements = element_count(*output);
        continue;
      }
      values_.push_back({.elements = element_count(*output), .producer = static_cast<int>(nodes_.size())});
      nodes_.push_back(std::move(node));
    }
    output_ = value_of.back();
  }

  // Fuses the convolution of `node` into the last node, if that produces its input and the kernel has room.
  static bool fuse_with_last(std::vector<Node>& nodes, const Node& node) {
    if (nodes.empty() || nodes.back().conv_pools.empty() || nodes.back().output != node.inputs[0])
      return false;
    std::vector<ConvPoolLayers> both = nodes.back().conv_pools;
    both.push_back(node.conv_pools[0]);
    if (!ConvPoolOp::fits(both)) return false;
    nodes.back().conv_pools = std::move(both);
    return true;
  }

  void describe_values() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      const bool activation = activation_of(node.layer->type).has_value();
      const bool saves_input = is_weighted(*node.layer) || node.layer->type == "batch_norm2d" || activation;
      Value& output = values_[node.output];
      output.saved_by_producer = (node.relu && node.conv_pools.empty()) || activation;
      output.needs_gradient = !node.layer->parameters.empty();
      for (const std::size_t input : node.inputs) {
        values_[input].consumers.push_back(n);
        if (saves_input) values_[input].savers.push_back(n);
        output.needs_gradient = output.needs_gradient || values_[input].needs_gradient;
      }
    }
  }

  // The head: from the end of the network backwards, as many linear layers with their activations as one
  // kernel takes.
  void find_head() {
    head_ = nodes_.size();
    std::vector<StackedLayers> layers;
    for (std::size_t end = head_; end > 0; end = head_) {
      std::size_t n = end - 1;
      const bool active = activation_of(nodes_[n].layer->type).has_value();
      const Layer* activation = active ? nodes_[n].layer : nullptr;
      if (active && (n == 0 || !only_feeds(n - 1, n))) return;
      if (active) --n;
      const Node& node = nodes_[n];
      if (node.layer->type != "linear" || (active && node.relu)) return;
      if (!autotuner_.may_fuse(node.layer->name)) return;
      if (end < nodes_.size() && !only_feeds(end - 1, end)) return;
      if (node.relu) activation = node.layer + 1;
      layers.insert(layers.begin(), {node.layer, activation});
      if (!LinearStackOp::fits(layers)) return;
      stacked_ = layers;
      head_ = n;
    }
  }

  // Whether node `to` is the only consumer of node `n`, and has no other input.
  bool only_feeds(std::size_t n, std::size_t to) const {
    return nodes_[to].inputs.size() == 1 && nodes_[to].inputs[0] == nodes_[n].output &&
           values_[nodes_[n].output].consumers.size() == 1;
  }

  void make_head() {
    if (stacked_.empty()) return;
    const Value &in = values_[nodes_[head_].inputs[0]], &out = values_[output_];
    compiled_.head = std::make_unique<LinearStackOp>(
        network_, stacked_, in.producer < 0 && reads_pixels(in.consumers),
        OpSlots{in.slot, out.slot, {}, in.gradient, adds(head_, 0)},
        OpSchedule{loss_time(), loss_time(), end_time(), images_}, compiled_.plan);
  }

  void plan_memory() {
    const auto images = static_cast<std::size_t>(images_);
    for (Value& value : values_) {
      if (value.elements * images > kMaxElements) {
        const std::string array = value.producer < 0 ? "its input" : "layer \"" + layer_of(value).name + "\"";
        throw ConfigError("batch_size " + std::to_string(images_) + " is too large for network \"" +
                          network_.name() + "\" on CUDA: a batch of " + array + " has " +
                          std::to_string(value.elements) +
                          " values for each sample, and more than 2^30 in all");
      }
      if (value.producer >= static_cast<int>(head_) && &value != &values_[output_]) continue;
      const std::size_t bytes = value.elements * images * sizeof(float);
      const int first = value.producer < 0 ? 0 : value.producer;
      int last = first;
      for (const std::size_t n : value.consumers) last = std::max(last, forward_time(n));
      for (const std::size_t n : value.savers) last = std::max(last, backward_time(n));
      if (value.saved_by_producer)
        last = std::max(last, backward_time(static_cast<std::size_t>(value.producer)));
      if (&value == &values_[output_]) last = std::max(last, loss_time());
      // The head computes its weight gradients after its backward, from its input: keep that to the end.
      const bool to_head = !value.consumers.empty() && value.consumers.back() >= head_;
      if (to_head) last = end_time();
      value.slot = compiled_.plan.add(bytes, first, last);
      if (!value.needs_gradient || value.producer >= static_cast<int>(head_)) continue;
      const int written =
          value.consumers.empty() || to_head ? loss_time() : backward_time(value.consumers.back());
      value.gradient =
          compiled_.plan.add(bytes, written, backward_time(static_cast<std::size_t>(value.producer)));
    }
    compiled_.input = values_[0].slot;
    compiled_.reads_input = !reads_pixels(values_[0].consumers);
    compiled_.output = values_[output_].slot;
    compiled_.output_gradient = values_[output_].gradient;
  }

  const Layer& layer_of(const Value& value) const {
    return *nodes_[static_cast<std::size_t>(value.producer)].layer;
  }

  // Whether node `n` has to add to the gradient of its input `i`, because another consumer has written it
  // before. Backward runs in reverse, so the last consumer writes first.
  bool adds(std::size_t n, std::size_t i) const {
    const Value& value = values_[nodes_[n].inputs[i]];
    if (value.consumers.back() != n) return true;
    return i > 0 && nodes_[n].inputs[0] == nodes_[n].inputs[i];
  }

  bool has_backward(const Node& node) const {
    return values_[node.output].gradient &&
           (!node.layer->parameters.empty() ||
            std::any_of(node.inputs.begin(), node.inputs.end(),
                        [&](std::size_t input) { return values_[input].needs_gradient; }));
  }

  // Whether the only consumer of the network's input reads the batch's bytes itself: then no op converts them
  // first.
  bool reads_pixels(const std::vector<std::size_t>& consumers) const {
    return consumers.size() == 1 && (consumers[0] == head_ || !nodes_[consumers[0]].conv_pools.empty());
  }

  std::unique_ptr<Op> make_op(std::size_t n) {
    const Node& node = nodes_[n];
    const Layer& layer = *node.layer;
    const Value &in = values_[node.inputs[0]], &out = values_[node.output];
    const OpSlots slots{in.slot, out.slot, out.gradient, in.gradient, adds(n, 0)};
    const OpSchedule schedule{forward_time(n), backward_time(n), end_time(), images_, joint_};
    MemoryPlan& plan = compiled_.plan;
    if (!node.conv_pools.empty()) {
      return std::make_unique<ConvPoolOp>(network_, node.conv_pools,
                                          node.inputs[0] == 0 && reads_pixels(in.consumers), slots, schedule,
                                          plan);
    }
    if (layer.type == "conv2d")
      return std::make_unique<ConvOp>(network_, layer, node.relu, slots, schedule, plan, autotuner_);
    if (layer.type == "linear")
      return std::make_unique<LinearOp>(network_, layer, node.relu, slots, schedule, plan, autotuner_);
    if (layer.type == "batch_norm2d")
      return std::make_unique<BatchNormOp>(network_, layer, slots, schedule, plan, autotuner_);
    if (layer.type == "max_pool2d")
      return std::make_unique<MaxPoolOp>(layer, slots, schedule, plan, autotuner_);
    if (layer.type == "avg_pool2d" || layer.type == "adaptive_avg_pool2d")
      return std::make_unique<AvgPoolOp>(layer, slots, schedule, plan, autotuner_);
    if (layer.type == "dropout") return std::make_unique<DropoutOp>(layer, seed_, dropouts_++, slots);
    if (layer.type == "residual") {
      const Value& second = values_[node.inputs[1]];
      return std::make_unique<SumOp>(layer, SumOp::Input{in.slot, in.gradient, adds(n, 0)},
                                     SumOp::Input{second.slot, second.gradient, adds(n, 1)}, out.slot,
                                     out.gradient);
    }
    if (const auto activation = activation_of(layer.type))
      return std::make_unique<ActivationOp>(layer, *activation, slots);
    throw ConfigError("layer \"" + layer.name + "\": the CUDA engine has no " + layer.type);
  }

  const Network& network_;
  const int images_;
  const std::uint64_t seed_;
  const bool joint_;
  KernelAutotuner& autotuner_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::size_t output_ = 0, head_ = 0;
  std::vector<StackedLayers> stacked_;  // the layers of nodes head_ and later
  std::uint32_t dropouts_ = 0;
  CompiledNetwork compiled_;
};

}  // namespace

CompiledNetwork compile(const Network& network, int images, std::uint64_t seed, bool joint,
                        KernelAutotuner& autotuner) {
  return Compiler(network, images, seed, joint, autotuner).compile();
}

}  // namespace sweep::cuda
