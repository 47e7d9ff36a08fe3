// Compiles a network's layers to CPU ops, and fuses neighbours if one op saves passes over memory.
//
//   conv2d + relu + max_pool2d 2×2: one ConvOp. A pooling window is a register tile, so what the
//     convolution gives before pooling is never stored. The ReLU may also come after the pooling.
//   linear, batch_norm2d or residual + relu: one op, which applies the ReLU before it stores the result.
//   flatten: no op, because the array is the same.
//   batch_norm2d next to a conv2d: not fused, but it writes its output with the convolution's zero padding,
//     and its input gradient in the layout that the convolution reads, which saves two copies.
//
// Layers are fused only if nobody else reads the values between them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

class BatchNormOp;
class ConvOp;

/// An op and its place in the network. A value is identified by the index of the op that
/// computes it, or kNetworkInput.
struct CompiledOp {
  std::unique_ptr<Op> op;
  std::size_t in, shortcut;           // its input values; shortcut is kNoShortcut except for sums
  std::size_t first_layer;            // index in Network::layers() of the first of the fused layers
  ConvOp* conv = nullptr;             // the op, if it is one
  BatchNormOp* batch_norm = nullptr;  // the op, if it is one
};

/// Ops in topological order. `max_blocks`: the largest number of blocks in a batch.
/// Throws ConfigError for a network without any op.
std::vector<CompiledOp> compile(const Network& network, std::size_t max_blocks);

}  // namespace sweep::cpu
