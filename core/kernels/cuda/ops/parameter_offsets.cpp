#include "core/kernels/cuda/ops/parameter_offsets.h"

namespace sweep::cuda {

ParameterOffsets parameter_offsets(const Network& network, const Layer& layer) {
  ParameterOffsets offsets;
  if (!layer.parameters.empty())
    offsets.weight = static_cast<int>(network.parameters()[layer.parameters[0]].offset);
  if (layer.parameters.size() > 1)
    offsets.bias = static_cast<int>(network.parameters()[layer.parameters[1]].offset);
  return offsets;
}

}  // namespace sweep::cuda
