// Own kernels against a library's: how long both take for a layer's work, and whether they agree.
#pragma once

#include <cstdint>
#include <optional>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/runtime/kernel_timer.h"

namespace sweep::cuda {

struct Comparison {
  bool agree = false;  // whether both give the same but for rounding; not if the library refuses
  double builtin_seconds = 0, library_seconds = 0;
};

/// Multiplications of the task, or as many as take the time of the numbers that it reads and writes.
std::int64_t products(const LinearShape& shape, const LibraryTask& task);
std::int64_t products(const ConvShape& shape, const LibraryTask& task);
std::int64_t products(const BatchNormShape& shape, const LibraryTask& task);
std::int64_t products(const PoolLayer& layer, const LibraryTask& task);

/// Lets both do `task` with random numbers, and a relu with a NaN, too, on the device that use_device()
/// chose. Waits. Throws DeviceError, also if its memory does not suffice for the arrays.
Comparison compare(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);

}  // namespace sweep::cuda
