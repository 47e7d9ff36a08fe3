// A network as TensorBoard's Graphs tab shows it: a scope per layer, with its operation and its weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "core/spec/loss.h"
#include "tbwriter/graph.h"

namespace sweep {

/// Nodes are called <network>/<layer>/<operation> and <network>/<layer>/weight, and those of inner layers
/// <network>/<layer>/<inner layer>/…; a residual has a node Add where its paths meet. The batch dimension is
/// unknown (-1). Device names are TensorFlow's: "/device:CPU:0", "/device:GPU:1". Throws ConfigError if
/// there is no such loss.
tbwriter::Graph network_graph(const Network& network, const Device& device, const LossSpec& loss = {});

/// What a step over `samples` samples took, for the nodes of network_graph()'s operations. `layers` is
/// Engine::profile()'s answer, and layers of other names are left out; `start_micros` is since 1970. Layers
/// stand one behind the other on the time line, though each value is of its forward and its backward pass.
std::vector<tbwriter::NodeProfile> network_profile(const Network& network, const Device& device,
                                                   std::span<const LayerProfile> layers, std::int64_t samples,
                                                   std::int64_t start_micros);

/// "/device:GPU:1" for cuda:1.
std::string graph_device(const Device& device);

}  // namespace sweep
