// The open libraries of this process.
#pragma once

#include <memory>

#include "core/kernels/cuda/libraries/library.h"

namespace sweep::cuda {

/// open_library(device), once per process and device: handles and probes cost a second, and a sweep makes one
/// engine per run. It stays open until the process ends. One that would not open, perhaps for lack of memory,
/// is tried again the next time. Shape: LinearShape or ConvShape. Thread-safe; the library may be used by
/// several threads.
template <class Shape>
std::shared_ptr<const LayerLibrary<Shape>> shared_library(int device);

/// Forgets what is open, so that the next call opens it again. For tests, which install other stand-ins.
void forget_shared_libraries();

}  // namespace sweep::cuda
