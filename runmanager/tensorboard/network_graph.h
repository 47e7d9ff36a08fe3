// A network as a graph for TensorBoard's Graphs tab: a scope per layer, with its operation and its weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/network/loss.h"
#include "core/network/network.h"
#include "tbwriter/plugin_data.h"

namespace sweep {

/// Nodes are called <layer>/<operation> and <layer>/weight, and those of inner layers <layer>/<inner
/// layer>/…; there are also images, labels and loss. A residual has a node Add where its paths meet. The
/// batch dimension is unknown (-1). Device names are TensorFlow's: "/device:CPU:0", "/device:GPU:1". Throws
/// ConfigError if `loss` is unknown.
tbwriter::Graph network_graph(const Network& network, const Device& device, const LossOptions& loss = {});

/// Time and memory of a step over `samples` samples, for the nodes of network_graph(). `layers`: from
/// Engine::profile(); layers with other names are ignored. Layers without time and memory were computed
/// together with the one before them: they share its time by their floating-point operations, and have the
/// memory of their own output. No node has neither time nor memory: TensorBoard draws such nodes as unused.
/// `start_micros`: since 1970. On the time line, the layers follow one another, although each value covers
/// the layer's forward and backward pass.
std::vector<tbwriter::NodeProfile> network_profile(const Network& network, const Device& device,
                                                   std::span<const LayerProfile> layers, std::int64_t samples,
                                                   std::int64_t start_micros);

/// Whether network_profile() has to share times among layers.
bool shares_times(std::span<const LayerProfile> layers);

}  // namespace sweep
