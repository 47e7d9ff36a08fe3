// What the CUDA driver says about this machine. Built with or without a CUDA toolkit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/device.h"

namespace sweep {

/// Why no CUDA device can train here; nothing if one can. Asks the driver once per process.
std::optional<std::string> cuda_missing_reason();

/// Why `device` cannot train although the driver sees it; nothing if it can.
std::optional<std::string> cuda_device_reason(const DeviceInfo& device);

/// See is_lost().
bool cuda_device_is_lost(int index);

/// Why several CUDA devices cannot exchange what they compute; nothing if they can.
std::optional<std::string> nccl_missing_reason();

/// Whether code for `architectures`, as in CMAKE_CUDA_ARCHITECTURES ("75-real;90;120-virtual"), runs on a GPU
/// of compute capability `capability` ("8.6"). Machine code runs on later minor versions of its major
/// version, PTX on every later version.
bool runs_code_for(std::string_view architectures, std::string_view capability);

/// Every CUDA device that the driver sees, at the position of its index: element i is cuda:i, because callers
/// look devices up by index. A device whose properties cannot be read keeps its place, without a capability.
std::vector<DeviceInfo> list_cuda_devices();

/// See list_libraries().
std::vector<LibraryInfo> list_cuda_libraries();

}  // namespace sweep
