// Fused convolutions and the stack of linear layers after them, with the loss and the gradients of the
// stack's activations, in one kernel: for batches with at most one image per multiprocessor. Kernels that
// take several images per block then leave most of the GPU idle, and the gaps between kernels make up most of
// a step.
#pragma once

#include <cstddef>

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/linear_stack.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {

/// Images of a batch that it is meant for: a block for each, all at the same time on a large GPU. To change
/// it changes no bits.
inline constexpr int kMaxJoinedImages = kMultiprocessors;

/// Whether the kernel can do `chain` and then `stack` with `shared_bytes` of shared memory per block.
/// The stack's input is the output of the chain.
bool conv_pool_stack_fits(const ConvPoolChain& chain, const LinearStackShape& stack,
                          std::size_t shared_bytes);

/// conv_pool_forward() and linear_stack() for pass.images images, with the same bits. stack_arrays.in is not
/// read.
void conv_pool_stack(Stream& stream, const ConvPoolChain& chain, const ConvPoolInput& in,
                     const ConvPoolArrays* arrays, const LinearStackShape& stack,
                     const LinearStackArrays& stack_arrays, const LinearStackPass& pass);

}  // namespace sweep::cuda
