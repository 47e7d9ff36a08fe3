// A network compiled for the CPU: a list of ops over preallocated buffers, run depth first on one block at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/cpu/block.h"
#include "core/kernels/cpu/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// Everything that one thread needs to take one block through the network. Small networks' workspaces stay in
/// the L2 cache.
struct Workspace {
  AlignedBuffer input;                     // [input elements][16]
  std::vector<AlignedBuffer> activations;  // each op's output
  std::vector<AlignedBuffer> saved;
  AlignedBuffer gradients[2];  // of an op's output and input, in turns
};

/// Parameters of all ops lie in one array in the ops' own layouts, parameter_floats() long; gradients and
/// optimizer state have the same layout, and zeros where it is padded.
class Program {
 public:
  explicit Program(const Network& network);

  std::size_t parameter_floats() const { return parameter_floats_; }
  std::size_t input_elements() const { return input_elements_; }
  std::size_t output_elements() const { return ops_.back()->out_elements(); }

  Workspace make_workspace() const;

  void import_parameters(std::span<const float> all, float* own) const;
  void export_parameters(const float* own, std::span<float> all) const;
  /// Number of independent shares of prepare()'s work; any thread may do any of them.
  std::size_t prepare_parts() const { return ops_.size(); }
  void prepare(const float* own, std::size_t part) { ops_[part]->prepare(own + offsets_[part]); }

  /// From workspace.input to the network's outputs [outputs][16], which lie in the workspace. Thread-safe for
  /// different workspaces. Adds each op's time to op_seconds, unless that is nullptr.
  const float* forward(const Pass& pass, const float* own, Workspace& workspace,
                       double* op_seconds = nullptr) const;

  /// Where the gradient of the outputs has to be written before backward().
  float* output_gradient(Workspace& workspace) const { return workspace.gradients[0].data(); }

  /// Adds the block's parameter gradients to grad_own. After forward() on the same workspace. op_seconds as
  /// in forward().
  void backward(const float* own, Workspace& workspace, float* grad_own, double* op_seconds = nullptr) const;

  /// Ops of the network, and of each: its place in Network::layers() (of the first, if several are fused),
  /// the bytes that it writes of one block, and those of its parameters.
  std::size_t op_count() const { return ops_.size(); }
  std::size_t first_layer(std::size_t op) const { return first_layers_[op]; }
  std::size_t block_bytes(std::size_t op) const;
  std::size_t parameter_bytes(std::size_t op) const;

 private:
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::size_t> offsets_;       // of each op's parameters
  std::vector<std::size_t> first_layers_;  // of each op
  std::size_t parameter_floats_ = 0, input_elements_ = 0;
};

}  // namespace sweep::cpu
