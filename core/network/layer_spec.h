// A network as the sweep file describes it: layers with PyTorch's names and
// arguments, before shapes are known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/arguments.h"

namespace sweep {

/// One layer. `type` is a name from layer_types(); `arguments` holds what was given, without defaults.
///
/// Two types contain layers, whose full names are such as "block1.conv1". "sequential" applies its `layers`
/// one after the other. "residual" adds the outputs of two paths from its input: `layers` and `shortcut`,
/// which is the identity if it is empty; the shapes of both must be equal.
struct LayerSpec {
  std::string name;  // unique among its siblings, without '.' and '/': "conv1"
  std::string type;  // "conv2d"
  Arguments arguments = {};
  std::vector<LayerSpec> layers = {};    // of sequential and residual
  std::vector<LayerSpec> shortcut = {};  // of residual
};

/// A network.
struct NetworkSpec {
  std::string name;  // for messages, the graph and the logs: "fashion-cnn"
  std::vector<LayerSpec> layers;
};

/// Every layer type, sequential and residual included, in the order that messages
/// and the schema show. Thread-safe.
std::span<const NamedType> layer_types();

/// Whether layers of this type contain layers: sequential and residual.
bool has_inner_layers(std::string_view type);

}  // namespace sweep
