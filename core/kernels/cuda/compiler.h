// Turns a network's layers into ops, fuses some of them, and plans their memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/kernels/cuda/fused_nodes.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/ops/linear_stack_op.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// An activation that several stages need. Each has its own copy, and of its gradient.
struct SharedValue {
  std::size_t value = 0;      // its number, by which the stages know it
  std::size_t row_bytes = 0;  // of one sample
  Slot slot, gradient;        // gradient: empty if nobody needs it
  std::size_t first_op = 0;   // of this stage: the producer, or the first consumer
  std::size_t last_op = 0;    // the last consumer, or the producer if there is none
};

struct CompiledNetwork {
  std::vector<std::unique_ptr<Op>> ops;  // in the order of forward()
  std::vector<std::size_t> backward;     // which ops have gradients, in the order of backward()
  std::vector<SharedValue> shared;       // with other stages; op number ops.size() stands for `stack`
  std::unique_ptr<LinearStackOp> stack;  // the linear layers at the end, fused with the loss; may be nullptr
  MemoryPlan plan;                       // solved
  std::size_t memory_bytes = 0;
  Slot input, output;
  bool reads_input = false;  // whether an op reads the input as floats
  Slot output_gradient;      // empty if there is a stack, which keeps its own, or nothing to learn
  UsedLibraries libraries;   // of these ops
};

/// Compiles the layers of one stage of `network`, by default all, for passes over up to `images`. `seed`:
/// dropout's. `joint`: see OpSchedule. Ops are fused as in the whole network, or in a way that gives the same
/// bits, so that bits do not depend on the stages. Only the last stage has an output, and a stack or an
/// output gradient; only the first an input. Throws ConfigError for a layer type that the engine lacks,
/// for batches whose arrays have more than 2^30 elements, and for networks of nearly 2^31 parameters.
CompiledNetwork compile(const Network& network, int images, std::uint64_t seed, bool joint, KernelRule& rule,
                        const StageLayers& stage = {});

}  // namespace sweep::cuda
