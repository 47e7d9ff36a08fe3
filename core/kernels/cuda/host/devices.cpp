// The device list of a program that is linked with the stand-in.
#include "core/kernels/cuda/host/current_device.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> cuda_missing_reason() { return std::nullopt; }

std::optional<std::string> cuda_device_reason(const DeviceInfo& /*device*/) { return std::nullopt; }

std::vector<DeviceInfo> list_cuda_devices() {
  return describe_cuda_devices(cuda::host::kDevices, [](int /*index*/) {
    std::optional<DeviceInfo> info(std::in_place);
    info->description = "CUDA stand-in on the host, for tests";
    info->memory_bytes = std::uint64_t{1} << 32;
    info->cores = 1;
    info->capability = "0.0";
    info->software = "none";
    return info;
  });
}

}  // namespace sweep
