// Makes ops of a network's layers and plans the memory that they share.
#pragma once

#include <memory>
#include <vector>

#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/ops/linear_stack_op.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "core/network/network.h"

namespace sweep::cuda {

struct CompiledNetwork {
  std::vector<std::unique_ptr<Op>> ops;  // in the order of forward()
  std::vector<const Op*> backward;       // those that gradients pass, in the order of backward()
  std::unique_ptr<LinearStackOp> head;   // the layers after the ops, with the loss; nullptr if there are none
  MemoryPlan plan;                       // solved
  std::size_t memory_bytes = 0;
  Slot input, output;
  bool reads_input = true;  // whether an op reads the input as floats
  Slot output_gradient;     // none if the network has nothing to learn, or a head, which keeps its own
  std::string kernels;      // KernelAutotuner::record()
};

/// For batches of up to `images`; `seed` is dropout's. Throws ConfigError for a layer that the engine does
/// not have, and for batches whose arrays it cannot address.
CompiledNetwork compile(const Network& network, int images, std::uint64_t seed, KernelAutotuner& autotuner);

}  // namespace sweep::cuda
