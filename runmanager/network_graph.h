// A network as TensorBoard's Graphs tab shows it: a scope per layer, with its operation and its weights.
#pragma once

#include <string>

#include "core/device.h"
#include "core/network/network.h"
#include "tbwriter/graph.h"

namespace sweep {

/// Nodes are called <network>/<layer>/<operation> and <network>/<layer>/weight; the batch dimension is
/// unknown (-1). Device names are TensorFlow's: "/device:CPU:0", "/device:GPU:1".
tbwriter::Graph network_graph(const Network& network, const Device& device);

/// "/device:GPU:1" for cuda:1.
std::string graph_device(const Device& device);

}  // namespace sweep
