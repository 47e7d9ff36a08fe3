// The device list of a program that is linked with the stand-in.
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/kernels/cuda/host/current_device.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {
namespace {

// The numbers in CUDA_VISIBLE_DEVICES up to the first that is none, as CUDA reads them; all without it.
std::vector<int> read_visible_devices() {
  std::vector<int> visible;
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) {
    for (int i = 0; i < cuda::host::kDevices; ++i) visible.push_back(i);
    return visible;
  }
  for (std::string_view text = variable; !text.empty();) {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number >= cuda::host::kDevices) break;
    visible.push_back(number);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const std::vector<int> visible = read_visible_devices();
  return visible;
}

}  // namespace

int cuda::host::device_count() { return static_cast<int>(visible_devices().size()); }

std::optional<std::string> cuda_missing_reason() {
  if (cuda::host::device_count() > 0) return std::nullopt;
  return "CUDA_VISIBLE_DEVICES hides all devices of the stand-in";
}

std::optional<std::string> cuda_device_reason(const DeviceInfo& /*device*/) { return std::nullopt; }

std::vector<DeviceInfo> list_cuda_devices() {
  return describe_cuda_devices(cuda::host::device_count(), [](int index) {
    std::optional<DeviceInfo> info(std::in_place);
    // A test may have devices of several models.
    const char* model = std::getenv("SWEEP_CUDA_HOST_MODEL");
    info->description = model != nullptr ? model : "CUDA stand-in on the host, for tests";
    info->memory_bytes = std::uint64_t{1} << 32;
    info->cores = 1;
    info->capability = "0.0";
    info->software = "none";
    info->uuid = std::to_string(visible_devices()[static_cast<std::size_t>(index)]);
    return info;
  });
}

}  // namespace sweep
