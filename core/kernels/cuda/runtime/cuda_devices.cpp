#include "core/kernels/cuda/runtime/cuda_devices.h"

#include <cuda_runtime_api.h>

#include <fstream>

namespace sweep {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "CUDA 13.0, driver 580.65.06 for CUDA 13.0". The driver's own version is in a file of its kernel module,
// which a container may hide.
std::string software(int driver) {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  return "CUDA " + version_text(CUDART_VERSION) + ", driver " + (version.empty() ? "" : version + " ") +
         "for CUDA " + version_text(driver);
}

struct DriverAnswer {
  std::vector<DeviceInfo> devices;
  std::optional<std::string> reason;  // why there are none
};

DeviceInfo describe(int index, const std::string& software) {
  DeviceInfo info;
  info.device = {DeviceType::kCuda, index};
  info.description = "a GPU whose properties cannot be read";
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return info;
  info.description = properties.name;
  info.memory_bytes = properties.totalGlobalMem;
  info.cores = properties.multiProcessorCount;
  info.capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  info.software = software;
  for (const char byte : properties.uuid.bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    info.uuid += {kDigits[value / 16], kDigits[value % 16]};
  }
  return info;
}

DriverAnswer ask_driver() {
  DriverAnswer found;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    found.reason = "no NVIDIA driver is loaded on this machine";
    return found;
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    found.reason = "the NVIDIA driver supports CUDA " + version_text(driver) +
                   ", but this build needs CUDA " + version_text(CUDART_VERSION) + "; install a newer driver";
  } else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    found.reason = "the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  } else if (error != cudaSuccess) {
    found.reason = std::string("the CUDA runtime reports: ") + cudaGetErrorString(error);
  }
  if (found.reason) return found;
  const std::string versions = software(driver);
  for (int i = 0; i < count; ++i) found.devices.push_back(describe(i, versions));
  return found;
}

// Asked once: creating a context on every device takes seconds on machines with many.
const DriverAnswer& driver_answer() {
  static const DriverAnswer answer = ask_driver();
  return answer;
}

}  // namespace

std::optional<std::string> cuda_missing_reason() { return driver_answer().reason; }

std::optional<std::string> cuda_device_reason(const DeviceInfo& device) {
  if (device.capability.empty()) return device.description;
  if (runs_code_for(SWEEP_CUDA_ARCHITECTURES, device.capability)) return std::nullopt;
  return device.description + " has compute capability " + device.capability +
         ", but this build has code for " SWEEP_CUDA_ARCHITECTURES
         " only; build with -DCMAKE_CUDA_ARCHITECTURES=native on this machine";
}

// Every call fails then, also one that does nothing.
bool cuda_device_is_lost(int index) {
  const bool is_there = cudaSetDevice(index) == cudaSuccess && cudaFree(nullptr) == cudaSuccess;
  if (!is_there) cudaGetLastError();
  return !is_there;
}

std::vector<DeviceInfo> list_cuda_devices() { return driver_answer().devices; }

}  // namespace sweep
