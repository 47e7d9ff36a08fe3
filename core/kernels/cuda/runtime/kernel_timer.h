// Measures kernels, to choose the faster of two that do the same.
#pragma once

#include <functional>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Puts `work` on the stream several times and returns the device seconds of one execution, taken from the
/// fastest round: other work on the GPU can only slow a round down. Waits. Throws DeviceError.
using KernelTimer = std::function<double(Stream& stream, const std::function<void()>& work)>;

/// The timer of this build: CUDA events. Empty on the stand-in, whose speed says nothing about a GPU.
KernelTimer kernel_timer();

}  // namespace sweep::cuda
