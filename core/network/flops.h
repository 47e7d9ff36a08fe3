// How much work a layer is.
#pragma once

#include "core/network/network.h"

namespace sweep {

/// Floating-point operations of one sample's forward pass through `layer` of `network`: two per multiply-add
/// of conv2d and linear; other layers count as 0. The parts of Network::forward_flops().
double layer_flops(const Network& network, const Layer& layer);

}  // namespace sweep
