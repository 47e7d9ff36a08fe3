// Devices that an error has taken from this process.
#pragma once

#include "core/engine/device.h"

namespace sweep {

/// Whether a failed kernel or broken memory keeps this process from using `device` any more; another process
/// may. Asks the device, so it is for after an error. Thread-safe.
bool is_lost(const Device& device);

}  // namespace sweep
