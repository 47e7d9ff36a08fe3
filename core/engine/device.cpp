#include "core/engine/device.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace sweep {
namespace {

[[noreturn]] void throw_unknown(std::string_view text) {
  throw ConfigError("unknown device \"" + std::string(text) +
                    "\"; allowed: cpu, cpu:N, cuda, cuda:N (N is a device number from 0), auto");
}

}  // namespace

std::string Device::name() const {
  const std::string base = type == DeviceType::kCpu ? "cpu" : "cuda";
  return index == 0 ? base : base + ":" + std::to_string(index);
}

std::string numbered_name(const Device& device) {
  return device.type == DeviceType::kCuda ? "cuda:" + std::to_string(device.index) : device.name();
}

Device parse_device(std::string_view text) {
  if (text == "auto") return {cuda_unavailable_reason() ? DeviceType::kCpu : DeviceType::kCuda, 0};
  const std::size_t colon = text.find(':');
  const std::string_view base = text.substr(0, colon);
  Device device;
  if (base == "cuda") {
    device.type = DeviceType::kCuda;
  } else if (base != "cpu") {
    throw_unknown(text);
  }
  if (colon != std::string_view::npos) {
    device.index = number_in<int>(text.substr(colon + 1)).value_or(-1);
    if (device.index < 0) throw_unknown(text);
  }
  return device;
}

}  // namespace sweep
