// How long the device takes for a piece of work, to compare two that do the same.
#pragma once

#include <functional>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Puts `work` on the stream a few times and returns the seconds that it took the device once, from the
/// fastest of several rounds. Waits. Throws DeviceError.
using KernelTimer = std::function<double(Stream& stream, const std::function<void()>& work)>;

/// CUDA's events; empty on the stand-in, whose speed tells nothing.
KernelTimer kernel_timer();

}  // namespace sweep::cuda
