// Turns a network's layers into ops, fuses some of them, and plans their memory.
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
  std::vector<const Op*> backward;       // those with gradients, in the order of backward()
  std::unique_ptr<LinearStackOp> head;   // the linear layers at the end, fused with the loss; may be nullptr
  MemoryPlan plan;                       // solved
  std::size_t memory_bytes = 0;
  Slot input, output;
  bool reads_input = true;  // whether an op reads the input as floats
  Slot output_gradient;     // empty if there is a head, which keeps its own, or nothing to learn
  std::string kernels;      // KernelAutotuner::record()
};

/// Compiles `network` for passes over up to `images`. `seed`: dropout's. `joint`: see OpSchedule. Throws
/// ConfigError for a layer type that the engine lacks, and for batches whose arrays have more than 2^30
/// elements.
CompiledNetwork compile(const Network& network, int images, std::uint64_t seed, bool joint,
                        KernelAutotuner& autotuner);

}  // namespace sweep::cuda
