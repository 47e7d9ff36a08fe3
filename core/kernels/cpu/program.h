// A network compiled for the CPU: a list of ops over preallocated buffers, run depth first on one block at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/cpu/compiler.h"
#include "core/kernels/cpu/gradient_plan.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// Everything that is needed to take one block through the network. Small networks' workspaces stay in the L2
/// cache.
struct Workspace {
  float* input;                     // [input elements][16]
  std::vector<float*> activations;  // each op's output
  std::vector<float*> saved;
  std::vector<float*> gradients;  // the slots of the gradient plan
  AlignedBuffer memory;           // all of it in one piece, which large pages can hold
  float* scratch = nullptr;       // of the op at work: scratch_floats(), from whoever runs the block
};

/// One block of a batch.
struct Block {
  std::size_t index = 0;   // in the batch
  std::size_t images = 0;  // at most kLanes; further lanes hold copies
};

/// Parameters of all ops lie in one array in the ops' own layouts, parameter_floats() long; gradients and
/// optimizer state have the same layout, and zeros where it is padded.
///
/// Training goes in phases. Batch normalization needs the whole batch, so it ends one: all blocks go through
/// a phase before any begins the next. Without it there is one phase, and each block goes all the way forward
/// and back while it is in the cache; with it, each block of the batch has a workspace of its own.
class Program {
 public:
  /// `max_blocks`: the most that a batch has. `bf16`: see compile().
  Program(const Network& network, std::size_t max_blocks, const Bf16Kernels* bf16);

  std::size_t parameter_floats() const { return parameter_floats_; }
  std::size_t input_elements() const { return input_elements_; }

  /// Without scratch memory, which one thread's workspaces should share: so it stays in the thread's cache.
  Workspace make_workspace() const;
  std::size_t scratch_floats() const;

  void import_parameters(std::span<const float> network_parameters, float* parameters) const;
  void export_parameters(const float* parameters, std::span<float> network_parameters) const;
  /// Number of independent shares of prepare()'s work; any thread may do any of them.
  std::size_t prepare_parts() const { return ops_.size(); }
  void prepare(const float* parameters, std::size_t part) {
    ops_[part].op->prepare(parameters + offsets_[part]);
  }

  /// Running statistics, in the layout of Network::buffers().
  void import_buffers(std::span<const float> network_buffers);
  void export_buffers(std::span<float> network_buffers) const;

  /// The outputs [outputs][16] of the network, after the last forward call on the workspace.
  const float* outputs(const Workspace& workspace) const { return workspace.activations.back(); }
  /// Where the gradient of the outputs has to be written before the first backward phase; nullptr if there
  /// are no parameters.
  float* output_gradient(Workspace& workspace) const {
    const std::size_t slot = plan_.ops.back().grad_out;
    return slot == kNoSlot ? nullptr : workspace.gradients[slot];
  }

  /// Evaluation: from workspace.input to the outputs. Thread-safe for different workspaces.
  void evaluate(const Pass& pass, const float* parameters, Workspace& workspace) const;

  /// Training. forward() for phases 0, 1, …, with finish_forward() between them; then backward() for the
  /// phases in reverse, with finish_backward() between them. forward() and backward() are thread-safe for
  /// different blocks and workspaces; the other two want one thread. backward() adds the block's parameter
  /// gradients to grad_parameters, and finish_backward() those of the batch. Each op's time is added to
  /// op_seconds, unless that is nullptr.
  std::size_t phases() const { return batch_norms_.size() + 1; }
  void forward(std::size_t phase, const Pass& pass, const Block& block, const float* parameters,
               Workspace& workspace, double* op_seconds);
  /// Between `phase` and the next. `keep_running`: leaves the running statistics as they are.
  void finish_forward(std::size_t phase, std::size_t blocks, bool keep_running);
  void backward(std::size_t phase, const Block& block, const float* parameters, Workspace& workspace,
                float* grad_parameters, double* op_seconds);
  /// Between `phase` and the one before it.
  void finish_backward(std::size_t phase, std::size_t blocks, float* grad_parameters);

  /// Ops of the network, and of each: its place in Network::layers() (of the first, if several are fused),
  /// the bytes that it writes of one block, and those of its parameters.
  std::size_t op_count() const { return ops_.size(); }
  std::size_t first_layer(std::size_t op) const { return ops_[op].first_layer; }
  std::size_t block_bytes(std::size_t op) const;
  std::size_t parameter_bytes(std::size_t op) const;

 private:
  const float* value(std::size_t op, const Workspace& workspace) const;
  void forward_op(std::size_t op, const Pass& pass, const float* parameters, Workspace& workspace) const;
  BackwardBuffers backward_buffers(std::size_t op, const Block& block, Workspace& workspace,
                                   float* grad_parameters) const;
  void backward_op(std::size_t op, const Block& block, const float* parameters, Workspace& workspace,
                   float* grad_parameters) const;
  /// A phase begins with the batch normalization that ended the one before, and ends before its own.
  std::size_t phase_begin(std::size_t phase) const { return phase == 0 ? 0 : batch_norms_[phase - 1]; }
  std::size_t phase_end(std::size_t phase) const {
    return phase < batch_norms_.size() ? batch_norms_[phase] : ops_.size();
  }
  BatchNormOp& batch_norm(std::size_t number) const { return *ops_[batch_norms_[number]].batch_norm; }

  std::vector<CompiledOp> ops_;
  std::vector<std::size_t> offsets_;      // of each op's parameters
  std::vector<std::size_t> batch_norms_;  // which ops are
  GradientPlan plan_;
  std::size_t parameter_floats_ = 0, input_elements_ = 0;
};

}  // namespace sweep::cpu
