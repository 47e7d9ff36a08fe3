// Runs a layer's work with the built-in kernel and with a library: how long both take, and whether they
// agree.
#pragma once

#include <cstdint>
#include <optional>

#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/runtime/kernel_timer.h"

namespace sweep::cuda {

struct Comparison {
  bool agree = false;  // whether both give the same numbers but for rounding; false if the library refuses
  double builtin_seconds = 0, library_seconds = 0;  // 0 unless they agree
};

/// Cost of a task in multiplications. For layers that memory limits: as many as take the time of their
/// traffic.
std::int64_t products(const LinearShape& shape, const LibraryTask& task);
std::int64_t products(const ConvShape& shape, const LibraryTask& task);
std::int64_t products(const BatchNormShape& shape, const LibraryTask& task);
std::int64_t products(const PoolLayer& layer, const LibraryTask& task);

/// Runs `task` both ways with random numbers, a fused relu also with a NaN, on the device that use_device()
/// chose. `timer` is called only if the results agree. Waits. Throws DeviceError, also if there is too little
/// memory for the arrays.
Comparison compare(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);
Comparison compare(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer);

/// Whether the library starts what it has planned: it may refuse only then. Runs the plan once with random
/// numbers. Throws DeviceError if there is too little memory for the arrays.
bool library_runs(const LinearShape& shape, const LibraryTask& task, const LibraryPlan& plan);
bool library_runs(const ConvShape& shape, const LibraryTask& task, const LibraryPlan& plan);
bool library_runs(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan);
bool library_runs(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan);

}  // namespace sweep::cuda
