#include "core/kernels/cuda/compiler.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/ops/conv_pool_op.h"
#include "core/kernels/cuda/ops/layer_ops.h"

// Moments of a step, in which MemoryPlan counts. With n nodes:
//   0 … n − 1     forward of node i at moment i
//   n             the loss; the stack's forward and backward
//   n + 1 … 2n    backward of node i at moment 2n − i
//   2n + 1        the optimizer, which reads the partial gradients of all ops
// An activation is alive from its producer's forward to its last use: the forward of its last consumer, or
// the backward of an op that saves it. A gradient is alive from the backward of the last consumer, which runs
// first and writes it (the other consumers add to it), to the backward of its producer.
namespace sweep::cuda {
namespace {

// Kernels index with 32 bits, and count a little beyond the end.
constexpr std::size_t kMaxElements = std::size_t{1} << 30;
constexpr std::size_t kMaxParameters = (std::size_t{1} << 31) - (std::size_t{1} << 16);

// Layers of the stack that one stage has: an op in front of others, or, of the last stage, the stack itself.
struct StackSection {
  std::size_t node;  // the first
  std::vector<StackedLayers> layers;
};

class Compiler {
 public:
  Compiler(const Network& network, int images, std::uint64_t seed, bool joint, KernelRule& rule,
           const StageLayers& stage)
      : network_(network),
        images_(images),
        seed_(seed),
        joint_(joint),
        rule_(rule),
        stage_(stage),
        fused_(fuse_layers(network, stage)) {
    compiled_.plan = MemoryPlan(stage.in_micro_batches);
  }

  CompiledNetwork compile() {
    if (network_.parameter_count() > kMaxParameters)
      throw ConfigError("network \"" + network_.name() + "\" is too large for CUDA: got " +
                        std::to_string(network_.parameter_count()) + " parameters, want at most " +
                        std::to_string(kMaxParameters));
    find_stack();
    plan_memory();
    op_of_node_.resize(nodes_.size());
    for (std::size_t n = 0; n < stack_; ++n) {
      if (is_here(n)) add_op(n, make_op(n));
      if (nodes_[n].layer->is<layers::Dropout>()) ++dropouts_;
    }
    make_stack();
    std::reverse(compiled_.backward.begin(), compiled_.backward.end());
    list_shared_values();
    compiled_.memory_bytes = compiled_.plan.solve();
    compiled_.libraries = rule_.used();
    return std::move(compiled_);
  }

 private:
  // See the table at the top.
  int forward_time(std::size_t node) const { return static_cast<int>(node); }
  int loss_time() const { return static_cast<int>(nodes_.size()); }
  int backward_time(std::size_t node) const { return 2 * loss_time() - static_cast<int>(node); }
  int end_time() const { return 2 * loss_time() + 1; }

  bool is_here(std::size_t node) const { return nodes_[node].stage == stage_.index; }
  bool is_last_stage() const { return stage_.index + 1 == stage_.count(); }

  void add_op(std::size_t node, std::unique_ptr<Op> op) {
    op_of_node_[node] = compiled_.ops.size();
    if (has_backward(nodes_[node])) compiled_.backward.push_back(compiled_.ops.size());
    compiled_.ops.push_back(std::move(op));
  }

  // The stack: from the end of the network backwards, as many linear layers with their activations as one
  // kernel takes.
  void find_stack() {
    stack_ = nodes_.size();
    std::vector<StackedLayers> layers;
    for (std::size_t end = stack_; end > 0; end = stack_) {
      std::size_t n = end - 1;
      const bool active = nodes_[n].layer->is<layers::Activated>();
      const Layer* activation = active ? nodes_[n].layer : nullptr;
      if (active && (n == 0 || !only_feeds(n - 1, n))) return;
      if (active) --n;
      const Node& node = nodes_[n];
      if (!node.layer->is<layers::Linear>() || (active && node.relu)) return;
      if (!rule_.may_fuse()) return;
      if (end < nodes_.size() && !only_feeds(end - 1, end)) return;
      if (node.relu) activation = node.layer + 1;
      layers.insert(layers.begin(), {node.layer, activation});
      if (!LinearStackOp::fits(layers)) return;
      stacked_ = layers;
      if (sections_.empty() || nodes_[sections_.front().node].stage != node.stage)
        sections_.insert(sections_.begin(), {n, {}});
      StackSection& section = sections_.front();
      section.node = n;
      section.layers.insert(section.layers.begin(), layers.front());
      stack_ = n;
    }
  }

  // Whether node `to` is the only consumer of node `n`, and has no other input.
  bool only_feeds(std::size_t n, std::size_t to) const {
    return nodes_[to].inputs.size() == 1 && nodes_[to].inputs[0] == nodes_[n].output &&
           values_[nodes_[n].output].consumers.size() == 1;
  }

  void make_stack() {
    if (sections_.empty()) return;
    const int gradient_slices = LinearStackOp::gradient_slices(stacked_, images_);
    for (const StackSection& section : sections_) {
      if (!is_here(section.node)) continue;
      const bool is_last = &section == &sections_.back();
      const Value& in = values_[nodes_[section.node].inputs[0]];
      const Value& out = is_last ? values_[output_] : values_[nodes_[(&section + 1)->node].inputs[0]];
      const int forward = is_last ? loss_time() : forward_time(section.node),
                backward = is_last ? loss_time() : backward_time(section.node);
      auto op = std::make_unique<LinearStackOp>(
          network_, section.layers, gradient_slices, in.producer < 0 && reads_pixels(in.consumers),
          OpSlots{in.slot, out.slot, is_last ? Slot() : out.gradient, in.gradient, adds(section.node, 0)},
          OpSchedule{forward, backward, end_time(), images_}, compiled_.plan);
      op_of_node_[section.node] = compiled_.ops.size();
      // The op in front of the stack, if it is one of convolutions that only the stack reads. Not if it goes
      // forward with micro-batches: the stack evaluates them all at once, which may be too many to join.
      if (stage_.count() == 1 && !stage_.in_micro_batches && stack_ > 0 && only_feeds(stack_ - 1, stack_)) {
        if (auto* convolutions = dynamic_cast<ConvPoolOp*>(compiled_.ops.back().get()))
          op->join(*convolutions);
      }
      if (is_last) {
        compiled_.stack = std::move(op);
      } else {
        compiled_.backward.push_back(compiled_.ops.size());
        compiled_.ops.push_back(std::move(op));
      }
    }
  }

  // The section of the stack that has node `n`; nullptr if it is not in the stack.
  const StackSection* section_of(std::size_t n) const {
    const StackSection* found = nullptr;
    for (const StackSection& section : sections_) {
      if (section.node <= n) found = &section;
    }
    return found;
  }

  // The moments at which the op of node `n` goes forward and back.
  int op_forward_time(std::size_t n) const {
    const StackSection* section = section_of(n);
    return forward_time(section == nullptr || section == &sections_.back() ? n : section->node);
  }
  int op_backward_time(std::size_t n) const {
    const StackSection* section = section_of(n);
    if (section == nullptr) return backward_time(n);
    return section == &sections_.back() ? loss_time() : backward_time(section->node);
  }

  // Whether the value is only in the shared memory of a stack's kernel.
  bool is_inside_stack(const Value& value) const {
    if (value.producer < static_cast<int>(stack_) || &value == &values_[output_]) return false;
    const std::size_t consumer = value.consumers[0];
    return section_of(consumer)->node != consumer;
  }

  std::size_t stage_of(const Value& value) const {
    return value.producer < 0 ? 0 : nodes_[static_cast<std::size_t>(value.producer)].stage;
  }

  // Whether an earlier or a later stage also needs the value.
  bool comes_from_elsewhere(const Value& value) const { return stage_of(value) < stage_.index; }
  bool goes_elsewhere(const Value& value) const {
    return std::any_of(value.consumers.begin(), value.consumers.end(),
                       [&](std::size_t n) { return nodes_[n].stage > stage_.index; });
  }
  bool is_held_here(const Value& value) const {
    return stage_of(value) == stage_.index || std::any_of(value.consumers.begin(), value.consumers.end(),
                                                          [&](std::size_t n) { return is_here(n); });
  }

  void check_size(const Value& value) const {
    if (value.elements * static_cast<std::size_t>(images_) <= kMaxElements) return;
    const std::string array = value.producer < 0 ? "its input" : "layer \"" + layer_of(value).name + "\"";
    throw ConfigError("batch_size " + std::to_string(images_) + " is too large for network \"" +
                      network_.name() + "\" on CUDA: a batch of " + array + " has " +
                      std::to_string(value.elements) + " values for each sample, and more than 2^30 in all");
  }

  void plan_memory() {
    for (Value& value : values_) {
      check_size(value);
      if (!is_inside_stack(value) && is_held_here(value)) plan_value(value);
    }
    compiled_.input = values_[0].slot;
    compiled_.reads_input = stage_.index == 0 && !reads_pixels(values_[0].consumers);
    if (!is_last_stage()) return;
    compiled_.output = values_[output_].slot;
    compiled_.output_gradient = values_[output_].gradient;
  }

  // Moments are those of the whole network; a stage sees only some. An activation that another stage
  // copies stays to the end, because it may do so at any moment; a gradient, to the moment of its producer,
  // which is after all of this stage.
  void plan_value(Value& value) {
    const auto images = static_cast<std::size_t>(images_);
    const std::size_t row_bytes = value.elements * sizeof(float);
    const bool goes = goes_elsewhere(value);
    const int first = value.producer < 0 ? 0 : op_forward_time(static_cast<std::size_t>(value.producer));
    int last = first;
    for (const std::size_t n : value.consumers) last = std::max(last, is_here(n) ? forward_time(n) : first);
    for (const std::size_t n : value.savers) last = std::max(last, is_here(n) ? backward_time(n) : first);
    if (value.saved_by_producer)
      last = std::max(last, backward_time(static_cast<std::size_t>(value.producer)));
    if (&value == &values_[output_]) last = std::max(last, loss_time());
    // The stack computes its weight gradients after its backward, from its input: keep that to the end.
    const bool to_stack = !value.consumers.empty() && value.consumers.back() >= stack_;
    if (to_stack || goes) last = end_time();
    value.slot = compiled_.plan.add_rows(images, row_bytes, first, last);
    if (!value.needs_gradient || (&value == &values_[output_] && !stacked_.empty())) return;
    const int written = value.consumers.empty() ? loss_time() : op_backward_time(value.consumers.back());
    const int read = op_backward_time(static_cast<std::size_t>(value.producer));
    value.gradient = compiled_.plan.add_rows(images, row_bytes, written, read);
  }

  void list_shared_values() {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const Value& value = values_[v];
      const bool comes = comes_from_elsewhere(value), goes = goes_elsewhere(value);
      if (!value.slot || !(comes || goes)) continue;
      std::vector<std::size_t> ops;
      if (!comes) ops.push_back(value.producer < 0 ? 0 : op_of(static_cast<std::size_t>(value.producer)));
      for (const std::size_t n : value.consumers) {
        if (is_here(n)) ops.push_back(op_of(n));
      }
      const auto [least, most] = std::minmax_element(ops.begin(), ops.end());
      compiled_.shared.push_back(
          {v, value.elements * sizeof(float), value.slot, value.gradient, *least, *most});
    }
  }

  // The op of a node of this stage.
  std::size_t op_of(std::size_t node) const {
    const StackSection* section = section_of(node);
    return op_of_node_[section == nullptr ? node : section->node];
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
    return consumers.size() == 1 && (consumers[0] == stack_ || !nodes_[consumers[0]].conv_pools.empty());
  }

  std::unique_ptr<Op> make_op(std::size_t n) {
    const Node& node = nodes_[n];
    const Value &in = values_[node.inputs[0]], &out = values_[node.output];
    LayerPlace place{.network = network_,
                     .layer = *node.layer,
                     .relu = node.relu,
                     .slots = {in.slot, out.slot, out.gradient, in.gradient, adds(n, 0)},
                     .second = {},
                     .schedule = {forward_time(n), backward_time(n), end_time(), images_, joint_},
                     .plan = compiled_.plan,
                     .rule = rule_,
                     .seed = seed_,
                     .dropouts = dropouts_};
    if (!node.conv_pools.empty()) {
      return std::make_unique<ConvPoolOp>(network_, node.conv_pools,
                                          node.inputs[0] == 0 && reads_pixels(in.consumers), place.slots,
                                          place.schedule, compiled_.plan);
    }
    if (node.inputs.size() > 1) {
      const Value& second = values_[node.inputs[1]];
      place.second = {second.slot, {}, {}, second.gradient, adds(n, 1)};
    }
    const auto op_of = [&]<class Kind>(const Kind& kind) -> std::unique_ptr<Op> {
      if constexpr (std::is_same_v<Kind, layers::Flatten>)
        return nullptr;  // is no node
      else
        return make_layer_op(kind, place);
    };
    return std::visit(op_of, node.layer->kind);
  }

  const Network& network_;
  const int images_;
  const std::uint64_t seed_;
  const bool joint_;
  KernelRule& rule_;
  const StageLayers& stage_;
  FusedNodes fused_;
  std::vector<Node>& nodes_ = fused_.nodes;
  std::vector<Value>& values_ = fused_.values;
  const std::size_t output_ = fused_.output;
  std::size_t stack_ = 0;
  std::vector<StackedLayers> stacked_;  // the layers of nodes stack_ and later
  std::vector<StackSection> sections_;  // the same by stages, in order
  std::vector<std::size_t> op_of_node_;
  std::uint32_t dropouts_ = 0;
  CompiledNetwork compiled_;
};

}  // namespace

CompiledNetwork compile(const Network& network, int images, std::uint64_t seed, bool joint, KernelRule& rule,
                        const StageLayers& stage) {
  return Compiler(network, images, seed, joint, rule, stage).compile();
}

}  // namespace sweep::cuda
