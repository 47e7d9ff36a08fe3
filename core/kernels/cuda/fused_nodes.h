// Which layers of a network become one op: the compiler's first step.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels/cuda/ops/conv_pool_op.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// One of several devices, each of which computes layers in a row.
struct StageLayers {
  std::vector<std::size_t> first_layers = {0};  // of all stages, increasing, the first 0
  std::size_t index = 0;                        // of this stage
  bool in_micro_batches = false;                // whether samples come in micro-batches, see MemoryPlan

  std::size_t count() const { return first_layers.size(); }
  /// The stage that has the layer. Fused layers are where the first of them is.
  std::size_t of_layer(std::size_t layer) const;
};

/// An activation: the network's input, or a node's output.
struct Value {
  std::size_t elements = 0;  // of one image
  int producer = -1;         // its node; -1: the network's input
  bool needs_gradient = false;
  bool saved_by_producer = false;                        // whether the producer's backward() reads it
  std::vector<std::size_t> consumers = {}, savers = {};  // nodes; savers' backward() also reads it
  Slot slot = {}, gradient = {};
};

/// The layers of one op: one layer; a convolution or linear layer with the relu after it; or one or two
/// convolutions with relu and pooling.
struct Node {
  const Layer* layer;
  std::size_t stage = 0;
  bool relu = false;
  std::vector<ConvPoolLayers> conv_pools = {};
  std::vector<std::size_t> inputs = {};  // values; residual layers have two
  std::size_t output = 0;
};

struct FusedNodes {
  std::vector<Node> nodes;    // in the order of forward(); their stages never decrease
  std::vector<Value> values;  // the first is the network's input
  std::size_t output = 0;     // the network's, a value
};

/// The nodes of all stages of `network`. Throws ConfigError if there are none.
FusedNodes fuse_layers(const Network& network, const StageLayers& stages);

/// Which of the stages that begin with these layers have nodes: one whose layers are all fused with those of
/// the stage before it, or need no computing, has none.
std::vector<bool> stages_with_nodes(const Network& network, const std::vector<std::size_t>& first_layers);

}  // namespace sweep::cuda
