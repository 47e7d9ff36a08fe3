// Stands in for cuda_devices.cpp in a build without a CUDA toolkit.
#include "core/kernels/cuda/cuda_devices.h"

namespace sweep {

std::optional<std::string> cuda_missing_reason() {
  return "this build has no CUDA: no CUDA toolkit was found when it was configured";
}

std::vector<DeviceInfo> list_cuda_devices() { return {}; }

}  // namespace sweep
