#include "core/engine/device.h"

#include <charconv>

#include "core/base/error.h"

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
    const std::string_view number = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), device.index);
    if (error != std::errc{} || end != number.data() + number.size() || device.index < 0) throw_unknown(text);
  }
  return device;
}

}  // namespace sweep
