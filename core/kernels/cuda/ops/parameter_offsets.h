// Where the parameters of a layer are.
#pragma once

#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// Where a layer's parameters start in Network::parameters(), in floats; -1: it has none. The bias follows
/// the weight.
struct ParameterOffsets {
  int weight = -1, bias = -1;
};

inline ParameterOffsets parameter_offsets(const Network& network, const Layer& layer) {
  const auto offset = [&](std::size_t number) {
    return number < layer.parameters.size()
               ? static_cast<int>(network.parameters()[layer.parameters[number]].offset)
               : -1;
  };
  return {offset(0), offset(1)};
}

/// The parameter at `offset`, or nullptr if that is -1.
inline const float* parameter_at(const Pass& pass, int offset) {
  return offset < 0 ? nullptr : pass.parameters + (offset - pass.first_parameter);
}

}  // namespace sweep::cuda
