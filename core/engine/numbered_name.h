// Names of devices as PyTorch prints them.
#pragma once

#include <string>

#include "core/engine/device.h"

namespace sweep {

/// "cpu" or "cuda:0", where Device::name() would say "cuda".
inline std::string numbered_name(const Device& device) {
  return device.type == DeviceType::kCuda ? "cuda:" + std::to_string(device.index) : device.name();
}

}  // namespace sweep
