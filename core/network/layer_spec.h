// A network as the sweep file describes it: layers by PyTorch's names, before any shape is known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/arguments.h"

namespace sweep {

/// One layer. `type` is a name from layer_types(); `arguments` holds what was given, without defaults.
///
/// Two types hold layers of their own, which get names such as "block1.conv1". "sequential" is its `layers`
/// one after the other. "residual" adds two paths from its input: the output of `layers` and that of
/// `shortcut`, or the input itself if there is none; their shapes must be equal.
struct LayerSpec {
  std::string name;  // unique among its neighbours, without '.' and '/': "conv1"
  std::string type;  // "conv2d"
  Arguments arguments = {};
  std::vector<LayerSpec> layers = {};    // of sequential and residual
  std::vector<LayerSpec> shortcut = {};  // of residual
};

struct NetworkSpec {
  std::string name;  // for the graph and the logs: "fashion-cnn"
  std::vector<LayerSpec> layers;
};

/// Every layer type that the engines can train, sequential and residual included.
std::span<const NamedType> layer_types();

/// Whether layers of this type hold others: sequential and residual.
bool has_inner_layers(std::string_view type);

}  // namespace sweep
