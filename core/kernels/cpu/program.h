// A network compiled for the CPU: a list of ops over preallocated buffers.
//
// A program runs depth first: one block of 16 images goes through all ops, and in training back again, before
// the next block starts. So a block's activations and gradients stay in the cache, and memory does not grow
// with the batch. Batch normalization is the exception, see Program about phases; and if the parameters are
// what does not fit into the cache, a few blocks go together, see blocks_at_once().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/cpu/gradient_plan.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"

namespace sweep::cpu {

class BatchNormOp;
class ConvOp;

/// Buffers for one block on its way through the network, forward and back. Used by one thread at a time and
/// reused for block after block; those of small networks stay in the L2 cache. `memory` is zero at first: ops
/// rely on the borders in their buffers staying zero. It begins with the input, [input elements][16]; then
/// come the outputs of ops and what they save, and the slots of the gradient plan, which values share.
struct Workspace {
  AlignedBuffer memory;      // one allocation, so that it can have large pages
  float* scratch = nullptr;  // scratch_floats() of the running thread, valid during one op only

  float* input() { return memory.data(); }
  float* at(std::size_t offset) { return memory.data() + offset; }
};

/// One block of a batch.
struct Block {
  std::size_t index = 0;        // among those that are trained at once
  std::size_t images = 0;       // 1 … kLanes; what the remaining lanes hold does not count
  std::size_t first_image = 0;  // position in the batch
  bool is_first = false;        // of its partial sum
  Workspace* workspace = nullptr;
};

/// Ops in a row, [begin, end): those of one stage, if several devices share a network.
struct OpRange {
  std::size_t begin = 0, end = static_cast<std::size_t>(-1);
  bool contains(std::size_t op) const { return op >= begin && op < end; }
};

/// An op and its place in the network. A value is identified by the index of the op that
/// computes it, or kNetworkInput.
struct CompiledOp {
  std::unique_ptr<Op> op;
  std::size_t in, shortcut;           // its input values; shortcut is kNoShortcut except for sums
  std::size_t first_layer;            // index in Network::layers() of the first of the fused layers
  ConvOp* conv = nullptr;             // the op, if it is one
  BatchNormOp* batch_norm = nullptr;  // the op, if it is one
  // Offsets of its parameters in those of the program; of its output and what it saves in a workspace.
  std::size_t parameters = 0, out = 0, saved = 0;
};

/// Ops in topological order. `max_blocks`: the largest number of blocks in a batch.
/// Throws ConfigError for a network without any op.
std::vector<CompiledOp> compile(const Network& network, std::size_t max_blocks);

/// The parameters of all ops are one array of parameter_floats() floats, each op's in its own layout and
/// padded to cache lines. Gradients and optimizer state have the same layout, with zeros in the padding, so
/// that the optimizer is a loop over floats that does not know the layers.
///
/// Training has phases. Batch normalization needs sums over the whole batch, so each one ends a phase: all
/// blocks finish a phase before any starts the next. A network with n batch normalizations has n + 1 phases,
/// forward and, in reverse, backward, and every block of the batch needs its own workspace. Without batch
/// normalization there is one phase, and one workspace per thread.
class Program {
 public:
  /// `max_blocks`: see compile(), which also says what it throws.
  Program(const Network& network, std::size_t max_blocks);

  std::size_t parameter_floats() const { return parameter_floats_; }
  std::size_t input_elements() const { return input_elements_; }

  /// A workspace without scratch memory. A thread should use the same scratch memory, of scratch_floats(),
  /// for all of its workspaces, so that it stays in that core's cache.
  Workspace make_workspace() const { return {AlignedBuffer(workspace_floats_)}; }
  std::size_t scratch_floats() const;

  void import_parameters(std::span<const float> network_parameters, float* parameters) const;
  void export_parameters(const float* parameters, std::span<float> network_parameters) const;
  /// Refreshes what an op derives from its parameters, such as packed and transformed weights; to be called
  /// for all ops after every change of the parameters. Thread-safe for different ops.
  void prepare(std::size_t op, const float* parameters) {
    ops_[op].op->prepare(parameters + ops_[op].parameters);
  }

  /// How many blocks should go through the network together, 1 … kMaxBlocksAtOnce: several if the parameters
  /// do not fit into a core's cache and are far more than the values of a block. Then nearly all are weights
  /// of linear layers, and each is read once for all these blocks.
  std::size_t blocks_at_once() const;

  /// Clears a partial sum, [parameter_floats()], before its blocks' backward passes add to it.
  void clear_gradient(float* grad_parameters) const;

  /// The network's outputs [outputs][16], valid from the block's last forward call until
  /// the workspace is used again.
  const float* outputs(Workspace& workspace) const { return workspace.at(ops_.back().out); }
  /// Where the caller has to write the gradient of the outputs, [outputs][16], before the first backward
  /// call; nullptr if there are no parameters.
  float* output_gradient(Workspace& workspace) const { return gradient(plan_.back().grad_out, workspace); }

  /// Computes the outputs of blocks, whose inputs are in their workspaces, with running statistics and
  /// without dropout. Thread-safe for different workspaces.
  void evaluate(const Pass& pass, const float* parameters, std::span<const Block> blocks) const;

  /// Training calls, for a batch: forward() of all blocks for phases 0, 1, …, with finish_moments()
  /// of batch_norm(p) between phases p and p + 1; then backward() of all blocks for the phases in reverse,
  /// with its finish_sums() between them. forward() and backward() take up to kMaxBlocksAtOnce blocks and are
  /// thread-safe for different ones; the other two must run alone. backward() adds their parameter gradients
  /// to grad_parameters, a partial sum; finish_sums() adds batch normalization's, which are known for the
  /// whole batch only. op_seconds [op_count()], if not nullptr, gets each op's time added. A phase of a block
  /// may be cut into calls with the parts of [0, op_count()), in this order forward and in the reverse order
  /// backward.
  std::size_t phases() const { return phase_begins_.size() - 1; }
  void forward(std::size_t phase, const Pass& pass, std::span<const Block> blocks, const float* parameters,
               double* op_seconds, OpRange ops = {});
  void backward(std::size_t phase, std::span<const Block> blocks, const float* parameters,
                float* grad_parameters, double* op_seconds, OpRange ops = {});
  /// The ops that a phase calls, forward and backward. The last one is also the first of the next phase: a
  /// batch normalization, which collects in one phase and computes in the other.
  OpRange phase_ops(std::size_t phase) const {
    return {phase_begins_[phase], std::min(phase_begins_[phase + 1] + 1, ops_.size())};
  }

  std::size_t op_count() const { return ops_.size(); }
  const CompiledOp& op(std::size_t index) const { return ops_[index]; }
  /// There are phases() − 1 of them.
  const CompiledOp& batch_norm(std::size_t number) const { return ops_[phase_begins_[number + 1]]; }

 private:
  template <class Use>
  void for_each_parameter(const Use& use) const;
  const float* value(std::size_t op, Workspace& workspace) const {
    if (op == kNoShortcut) return nullptr;
    return op == kNetworkInput ? workspace.input() : workspace.at(ops_[op].out);
  }
  float* gradient(std::size_t slot, Workspace& workspace) const {
    return slot == kNoSlot ? nullptr : workspace.at(slots_[slot]);
  }
  void forward_op(std::size_t op, const Pass& pass, const float* parameters,
                  std::span<const Block> blocks) const;
  // `grad_parameters`: a partial sum, all of it; nullptr forward.
  Buffers buffers_of(std::size_t op, const Block& block, float* grad_parameters) const;
  void backward_op(std::size_t op, std::span<const Block> blocks, const float* parameters,
                   float* grad_parameters) const;
  void spread_gradient(std::size_t op, const Buffers& buffers, Workspace& workspace) const;

  std::vector<CompiledOp> ops_;
  // Where the phases begin, and the last one ends: phase p runs the ops from batch normalization p − 1, which
  // can now normalize, up to batch normalization p, which only collects its moments.
  std::vector<std::size_t> phase_begins_ = {0};
  std::vector<PlannedOp> plan_;
  std::vector<std::size_t> slots_;  // offsets of the plan's slots in a workspace
  std::size_t parameter_floats_ = 0, input_elements_, workspace_floats_;
};

}  // namespace sweep::cpu
