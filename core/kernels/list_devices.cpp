// Lists the devices of this machine: the CPU, and what the CUDA driver and libraries report.
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/engine/device.h"
#include "core/kernels/cpu/simd/kernel.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {
namespace {

// The model name in /proc/cpuinfo; such as "aarch64" on architectures that have none there.
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "CPU";
}

// What Highway calls AVX3 is AVX-512 elsewhere.
std::string instruction_set() {
  std::string name = simd_target_name();
  if (name.starts_with("AVX3")) name.replace(0, 4, "AVX-512");
  return name;
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices(1);
  devices[0].description = cpu_model();
  devices[0].memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  devices[0].cores = available_cores();
  devices[0].capability = instruction_set();
  devices[0].software = "Highway " + simd_library_version();
  for (DeviceInfo& device : list_cuda_devices()) devices.push_back(std::move(device));
  return devices;
}

std::vector<LibraryInfo> list_libraries() { return list_cuda_libraries(); }

std::optional<std::string> cuda_unavailable_reason() { return cuda_missing_reason(); }

std::optional<std::string> device_group_unavailable_reason(const Device& first, int count, int processes) {
  if (first.type == DeviceType::kCpu) return std::nullopt;
  if (count > kMaxCudaReplicas)
    return "\"parallel.data\": at most " + std::to_string(kMaxCudaReplicas) +
           " GPUs, or sets of them, can share a batch, which is cut into as many parts, got " +
           std::to_string(count);
  for (int i = 0; i < count / processes; ++i) {
    if (auto reason = unavailable_reason(Device{first.type, first.index + i})) return reason;
  }
  return nccl_missing_reason();
}

bool is_lost(const Device& device) {
  return device.type == DeviceType::kCuda && cuda_device_is_lost(device.index);
}

std::optional<std::string> unavailable_reason(const Device& device) {
  if (device.type == DeviceType::kCpu) {
    if (device.index == 0) return std::nullopt;
    return device.name() + " is a part of this machine that only parallel training uses";
  }
  if (auto reason = cuda_unavailable_reason()) return reason;
  const std::vector<DeviceInfo> devices = list_cuda_devices();
  if (device.index >= 0 && device.index < static_cast<int>(devices.size()))
    return cuda_device_reason(devices[static_cast<std::size_t>(device.index)]);
  return "there is no " + device.name() + ": this machine has " + counted(devices.size(), "CUDA device") +
         ", numbered from 0";
}

}  // namespace sweep
