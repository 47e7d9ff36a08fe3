// What a type of layers makes of a layer's input: its output and its arrays. Not part of the installed
// interface.
#pragma once

#include <string>
#include <vector>

#include "core/network/network.h"

namespace sweep {

/// The arrays of a network, to which each layer adds its own.
struct NetworkArrays {
  std::vector<Parameter>&parameters, &buffers;
};

/// Returns the layer of `spec`, whose type is not sequential, with the full name `name`, on an input of the
/// shape `input`; without Layer::inputs. Throws as Network's constructor.
Layer make_layer(const LayerSpec& spec, const std::string& name, const Shape& input, NetworkArrays arrays);

}  // namespace sweep
