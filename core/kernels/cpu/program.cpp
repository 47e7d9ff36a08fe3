#include "core/kernels/cpu/program.h"

#include <algorithm>
#include <chrono>

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
    : ops_(compile(network, max_blocks)), input_elements_(element_count(network.input())) {
  std::vector<PlannedOp> planned;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const OpSizes& sizes = ops_[i].op->sizes();
    ops_[i].parameters = parameter_floats_;
    parameter_floats_ += sizes.parameter_floats;
    if (ops_[i].batch_norm != nullptr) batch_norms_.push_back(i);
    planned.push_back({.in = ops_[i].in,
                       .shortcut = ops_[i].shortcut,
                       .has_parameters = sizes.parameter_floats > 0,
                       .out_floats = sizes.grad_out_floats});
  }
  plan_ = plan_gradients(planned);
}

Workspace Program::make_workspace() const {
  std::size_t floats = round_up_to_cache_line(input_elements_ * kLanes);
  const auto reserve = [&](std::size_t size) {
    const std::size_t begin = floats;
    floats += round_up_to_cache_line(size);
    return begin;
  };
  std::vector<std::size_t> activations, saved, gradients;
  for (const CompiledOp& compiled : ops_) {
    activations.push_back(reserve(compiled.op->sizes().out_floats));
    saved.push_back(reserve(compiled.op->sizes().saved_floats));
  }
  for (const std::size_t size : plan_.slot_floats) gradients.push_back(reserve(size));

  Workspace workspace{nullptr, {}, {}, {}, AlignedBuffer(floats)};
  float* memory = workspace.memory.data();
  workspace.input = memory;
  for (const std::size_t begin : activations) workspace.activations.push_back(memory + begin);
  for (const std::size_t begin : saved) workspace.saved.push_back(memory + begin);
  for (const std::size_t begin : gradients) workspace.gradients.push_back(memory + begin);
  return workspace;
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

const float* Program::value(std::size_t op, const Workspace& workspace) const {
  if (op == kNoShortcut) return nullptr;
  return op == kNetworkInput ? workspace.input : workspace.activations[op];
}

Buffers Program::buffers_of(std::size_t op, Workspace& workspace) const {
  return {value(ops_[op].in, workspace), value(ops_[op].shortcut, workspace), workspace.saved[op],
          workspace.activations[op], workspace.scratch};
}

void Program::forward_op(std::size_t op, const Pass& pass, const float* parameters,
                         Workspace& workspace) const {
  ops_[op].op->forward(pass, parameters + ops_[op].parameters, buffers_of(op, workspace));
}

void Program::evaluate(const Pass& pass, const float* parameters, Workspace& workspace) const {
  for (std::size_t i = 0; i < ops_.size(); ++i) forward_op(i, pass, parameters, workspace);
}

void Program::forward(std::size_t phase, const Pass& pass, const Block& block, const float* parameters,
                      Workspace& workspace, double* op_seconds, OpRange ops) {
  const std::size_t phase_stop = phase_end(phase), end = std::min(phase_stop, ops.end);
  for (std::size_t i = std::max(phase_begin(phase), ops.begin); i < end; ++i) {
    timed(op_seconds, i, [&] { forward_op(i, pass, parameters, workspace); });
  }
  if (phase_stop == ops_.size() || !ops.contains(phase_stop)) return;
  timed(op_seconds, phase_stop, [&] {
    const CompiledOp& norm = ops_[phase_stop];
    norm.batch_norm->collect_moments(block.index, block.images, value(norm.in, workspace));
  });
}

Buffers Program::backward_buffers(std::size_t op, const Block& block, Workspace& workspace,
                                  float* grad_parameters) const {
  const PlannedGradients& gradients = plan_.ops[op];
  const auto slot = [&](std::size_t s) { return s == kNoSlot ? nullptr : workspace.gradients[s]; };
  Buffers buffers = buffers_of(op, workspace);
  buffers.grad_out = slot(gradients.grad_out);
  buffers.grad_in = slot(gradients.scratch != kNoSlot ? gradients.scratch : gradients.in.slot);
  buffers.grad_parameters = grad_parameters + ops_[op].parameters;
  buffers.images = block.images;
  return buffers;
}

void Program::backward_op(std::size_t op, const Block& block, const float* parameters, Workspace& workspace,
                          float* grad_parameters) const {
  using Action = GradientEdge::Action;
  const PlannedGradients& gradients = plan_.ops[op];
  const Buffers buffers = backward_buffers(op, block, workspace, grad_parameters);
  ops_[op].op->backward(parameters + ops_[op].parameters, buffers);
  const bool is_sum = ops_[op].shortcut != kNoShortcut;
  // The op has written the gradient of its input where backward_buffers() said. What is left is to add it to
  // a slot that another reader wrote before, or, for a sum, to copy grad_out to the second input.
  const auto pass_on = [&](const GradientEdge& edge, const float* gradient) {
    const OpSizes& sizes = ops_[op].op->sizes();
    const std::size_t floats = (is_sum ? sizes.out_elements : sizes.in_elements) * kLanes;
    float* slot = edge.slot == kNoSlot ? nullptr : workspace.gradients[edge.slot];
    if (edge.action == Action::kAdd) sum_values(gradient, slot, floats, false, slot);
    if (edge.action == Action::kWrite && is_sum) std::copy_n(gradient, floats, slot);
  };
  pass_on(gradients.in, is_sum ? buffers.grad_out : buffers.grad_in);
  pass_on(gradients.shortcut, buffers.grad_out);
}

void Program::backward(std::size_t phase, const Block& block, const float* parameters, Workspace& workspace,
                       float* grad_parameters, double* op_seconds, OpRange ops) {
  // From the batch normalization after this phase, whose sums are now complete, back to the one that the
  // phase begins with, whose sums are collected.
  const OpRange all = phase_ops(phase);
  const std::size_t begin = std::max(all.begin, ops.begin);
  for (std::size_t op = std::min(all.end, ops.end); op-- > begin;) {
    if (plan_.ops[op].grad_out == kNoSlot) continue;
    timed(op_seconds, op, [&] {
      if (phase > 0 && op == all.begin) {
        ops_[op].batch_norm->collect_sums(block.index,
                                          backward_buffers(op, block, workspace, grad_parameters));
      } else {
        backward_op(op, block, parameters, workspace, grad_parameters);
      }
    });
  }
}

}  // namespace sweep::cpu
