// What the CUDA runtime says of this machine. Built with or without a CUDA toolkit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/device.h"

namespace sweep {

/// Why no CUDA device can train here, or nothing if one can. Asked of the driver once per process.
std::optional<std::string> cuda_missing_reason();

/// Why that CUDA device cannot train although the driver sees it, or nothing if it can.
std::optional<std::string> cuda_device_reason(const DeviceInfo& device);

/// Whether code for `architectures`, as CMAKE_CUDA_ARCHITECTURES has them ("75-real;90;120-virtual"), runs on
/// a GPU of compute capability `capability` ("8.6"): machine code on later minor versions, PTX on every later
/// version.
bool runs_code_for(std::string_view architectures, std::string_view capability);

/// Every CUDA device that the driver sees, in its order.
std::vector<DeviceInfo> list_cuda_devices();

/// See list_libraries().
std::vector<LibraryInfo> list_cuda_libraries();

}  // namespace sweep
