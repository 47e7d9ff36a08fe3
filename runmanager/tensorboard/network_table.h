// A network as a table for TensorBoard's Text tab.
#pragma once

#include <string>

#include "core/network/network.h"

namespace sweep {

/// Markdown: a row per layer with name, type, arguments other than defaults, shape of one sample's output,
/// number of parameters, and floating-point operations of one sample's forward pass; then the sums.
std::string network_table(const Network& network);

}  // namespace sweep
