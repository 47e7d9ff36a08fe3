// Own kernels against a library's: how long both take for a layer's work, and whether they agree.
#pragma once

#include <cstdint>
#include <optional>

#include "core/kernels/cuda/device_clock.h"
#include "core/kernels/cuda/library.h"

namespace sweep::cuda {

struct Comparison {
  bool agree = false;  // whether both give the same but for rounding; not if the library refuses
  double own_seconds = 0, library_seconds = 0;
};

/// Multiplications of the task.
std::int64_t products(const LinearShape& shape, const LibraryTask& task);
std::int64_t products(const ConvShape& shape, const LibraryTask& task);

/// Lets both do `task` with random numbers, and a relu with a NaN, too, on the device that use_device()
/// chose. Waits. Throws DeviceError, also if its memory does not suffice for the arrays.
Comparison compare(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const DeviceClock& clock);
Comparison compare(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const DeviceClock& clock);

}  // namespace sweep::cuda
