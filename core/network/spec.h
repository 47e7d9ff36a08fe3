// A network as the sweep file describes it: layers by PyTorch's names, before any shape is known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/arguments.h"

namespace sweep {

/// One layer. `type` is a name from layer_types(); `arguments` holds what was given, without defaults.
struct LayerSpec {
  std::string name;  // unique within its network, without '.' and '/': "conv1"
  std::string type;  // "conv2d"
  Arguments arguments;
};

struct NetworkSpec {
  std::string name;  // for the graph and the logs: "fashion-cnn"
  std::vector<LayerSpec> layers;
};

/// Every layer type that the engines can train.
std::span<const NamedType> layer_types();

}  // namespace sweep
