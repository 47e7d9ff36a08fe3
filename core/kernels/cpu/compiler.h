// From a network's layers to ops for the CPU, fused where it pays.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

class BatchNormOp;
class ConvOp;

/// An op and its place in the network. Values are named by the op that makes them, or kNetworkInput.
struct CompiledOp {
  std::unique_ptr<Op> op;
  std::size_t in, shortcut;           // values; shortcut is kNoShortcut but for sums
  std::size_t first_layer;            // place in Network::layers(), of the first if several are fused
  ConvOp* conv = nullptr;             // the op, if it is one
  BatchNormOp* batch_norm = nullptr;  // the op, if it is one
};

/// Ops in computing order. `max_blocks` is the most that a batch has. With `bf16`, convolutions and linear
/// layers round their factors where that pays; see ConvOp and LinearOp. Throws ConfigError for a layer that
/// the engine lacks, and for a network without any op.
std::vector<CompiledOp> compile(const Network& network, std::size_t max_blocks, const Bf16Kernels* bf16);

}  // namespace sweep::cpu
