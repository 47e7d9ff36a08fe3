#include "core/kernels/cpu/program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/kernels/cpu/kernels/layer_kernels.h"
#include "core/kernels/cpu/ops/batch_norm_op.h"

namespace sweep::cpu {
namespace {

// Calls work(), and adds its time to op_seconds[op], unless that is nullptr.
template <class Work>
void timed(double* op_seconds, std::size_t op, Work work) {
  if (op_seconds == nullptr) return work();
  const auto begin = std::chrono::steady_clock::now();
  work();
  op_seconds[op] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Program::Program(const Network& network, std::size_t max_blocks)
    : ops_(compile(network, max_blocks)),
      input_elements_(element_count(network.input())),
      workspace_floats_(round_up_to_cache_line(input_elements_ * kLanes)) {
  const auto reserve = [this](std::size_t floats) {
    return std::exchange(workspace_floats_, workspace_floats_ + round_up_to_cache_line(floats));
  };
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    CompiledOp& compiled = ops_[i];
    const OpSizes& sizes = compiled.op->sizes();
    compiled.parameters = std::exchange(parameter_floats_, parameter_floats_ + sizes.parameter_floats);
    compiled.out = reserve(sizes.out_floats);
    compiled.saved = reserve(sizes.saved_floats);
    if (compiled.batch_norm != nullptr) phase_begins_.push_back(i);
    plan_.push_back({.in = compiled.in,
                     .shortcut = compiled.shortcut,
                     .has_parameters = sizes.parameter_floats > 0,
                     .out_floats = sizes.grad_out_floats});
  }
  phase_begins_.push_back(ops_.size());
  for (const std::size_t floats : plan_gradients(plan_)) slots_.push_back(reserve(floats));
}

std::size_t Program::scratch_floats() const {
  std::size_t floats = 0;
  for (const CompiledOp& compiled : ops_) floats = std::max(floats, compiled.op->sizes().scratch_floats);
  return floats;
}

// Calls use(place in the network's parameters, place in the program's) for each parameter.
template <class Use>
void Program::for_each_parameter(const Use& use) const {
  for (const CompiledOp& compiled : ops_) {
    for (const ParameterRun& run : compiled.op->parameter_runs()) {
      for (std::size_t i = 0; i < run.count; ++i)
        use(run.network + i * run.network_step, compiled.parameters + run.own + i * run.own_step);
    }
  }
}

void Program::import_parameters(std::span<const float> network_parameters, float* parameters) const {
  for_each_parameter([&](std::size_t from, std::size_t to) { parameters[to] = network_parameters[from]; });
}

void Program::export_parameters(const float* parameters, std::span<float> network_parameters) const {
  for_each_parameter([&](std::size_t to, std::size_t from) { network_parameters[to] = parameters[from]; });
}

void Program::clear_gradient(float* grad_parameters) const {
  for (const CompiledOp& compiled : ops_) {
    const OpSizes& sizes = compiled.op->sizes();
    if (!sizes.begins_sum) std::fill_n(grad_parameters + compiled.parameters, sizes.parameter_floats, 0.0f);
  }
}

std::size_t Program::blocks_at_once() const {
  constexpr std::size_t kCache = (std::size_t{1} << 20) / sizeof(float);
  return parameter_floats_ > kCache && parameter_floats_ > 8 * workspace_floats_ ? kMaxBlocksAtOnce : 1;
}

Buffers Program::buffers_of(std::size_t op, const Block& block, float* grad_parameters) const {
  Workspace& workspace = *block.workspace;
  return {value(ops_[op].in, workspace),
          value(ops_[op].shortcut, workspace),
          workspace.at(ops_[op].saved),
          workspace.at(ops_[op].out),
          workspace.scratch,
          gradient(plan_[op].grad_out, workspace),
          gradient(plan_[op].grad_in, workspace),
          grad_parameters == nullptr ? nullptr : grad_parameters + ops_[op].parameters,
          block.first_image,
          block.images,
          block.is_first};
}

void Program::forward_op(std::size_t op, const Pass& pass, const float* parameters,
                         std::span<const Block> blocks) const {
  std::array<Buffers, kMaxBlocksAtOnce> buffers;
  std::ranges::transform(blocks, buffers.begin(),
                         [&](const Block& block) { return buffers_of(op, block, nullptr); });
  ops_[op].op->forward_all(pass, parameters + ops_[op].parameters, std::span(buffers).first(blocks.size()));
}

void Program::evaluate(const Pass& pass, const float* parameters, std::span<const Block> blocks) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) forward_op(i, pass, parameters, blocks);
}

void Program::forward(std::size_t phase, const Pass& pass, std::span<const Block> blocks,
                      const float* parameters, double* op_seconds, OpRange ops) {
  const std::size_t stop = phase_begins_[phase + 1], end = std::min(stop, ops.end);
  for (std::size_t i = std::max(phase_begins_[phase], ops.begin); i < end; ++i)
    timed(op_seconds, i, [&] { forward_op(i, pass, parameters, blocks); });
  if (stop == ops_.size() || !ops.contains(stop)) return;
  timed(op_seconds, stop, [&] {
    const CompiledOp& norm = ops_[stop];
    for (const Block& block : blocks)
      norm.batch_norm->collect_moments(block.index, block.images, value(norm.in, *block.workspace));
  });
}

void Program::backward_op(std::size_t op, std::span<const Block> blocks, const float* parameters,
                          float* grad_parameters) const {
  std::array<Buffers, kMaxBlocksAtOnce> buffers;
  std::ranges::transform(blocks, buffers.begin(),
                         [&](const Block& block) { return buffers_of(op, block, grad_parameters); });
  ops_[op].op->backward_all(parameters + ops_[op].parameters, std::span(buffers).first(blocks.size()));
  for (std::size_t i = 0; i < blocks.size(); ++i) spread_gradient(op, buffers[i], *blocks[i].workspace);
}

// What is left of an op's backward pass: to add the gradient of its input to a slot that another reader wrote
// before, or to copy a sum's grad_out.
void Program::spread_gradient(std::size_t op, const Buffers& buffers, Workspace& workspace) const {
  const PlannedOp& plan = plan_[op];
  const bool is_sum = plan.shortcut != kNoShortcut;
  const OpSizes& sizes = ops_[op].op->sizes();
  const std::size_t floats = (is_sum ? sizes.out_elements : sizes.in_elements) * kLanes;
  const float* from = is_sum ? buffers.grad_out : buffers.grad_in;
  for (const GradientEdge& edge : {plan.to_in, plan.to_shortcut}) {
    float* slot = gradient(edge.slot, workspace);
    if (edge.adds) {
      sum_values(from, slot, floats, false, slot);
    } else if (is_sum && slot != nullptr && slot != from) {
      std::copy_n(from, floats, slot);
    }
  }
}

void Program::backward(std::size_t phase, std::span<const Block> blocks, const float* parameters,
                       float* grad_parameters, double* op_seconds, OpRange ops) {
  // From the batch normalization after this phase, whose sums are now complete, back to the one that the
  // phase begins with, whose sums are collected.
  const OpRange all = phase_ops(phase);
  const std::size_t begin = std::max(all.begin, ops.begin);
  for (std::size_t op = std::min(all.end, ops.end); op-- > begin;) {
    if (plan_[op].grad_out == kNoSlot) continue;
    timed(op_seconds, op, [&] {
      if (phase == 0 || op > all.begin) return backward_op(op, blocks, parameters, grad_parameters);
      for (const Block& block : blocks)
        ops_[op].batch_norm->collect_sums(block.index, buffers_of(op, block, grad_parameters));
    });
  }
}

}  // namespace sweep::cpu
