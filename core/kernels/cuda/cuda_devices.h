// What the CUDA runtime says of this machine. Built with or without a CUDA toolkit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/device.h"

namespace sweep {

/// Why no CUDA device can train here, or nothing if one can. Asked of the driver once per process.
std::optional<std::string> cuda_missing_reason();

/// Every CUDA device that the driver sees, in its order.
std::vector<DeviceInfo> list_cuda_devices();

}  // namespace sweep
