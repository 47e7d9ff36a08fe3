// nccl.h in a build with CUDA, but without NCCL's header.
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() {
  return "several GPUs train one network through NCCL, which this build cannot use: there was no nccl.h when "
         "it was configured";
}

namespace cuda {

DeviceGroupId make_group_id() { throw DeviceError(*nccl_missing_reason()); }
std::unique_ptr<DeviceGroup> make_device_group(const DeviceGroupId& /*id*/, int /*rank*/, int /*size*/,
                                               double /*deadline*/, std::function<void()> /*check*/) {
  throw DeviceError(*nccl_missing_reason());
}

}  // namespace cuda
}  // namespace sweep
