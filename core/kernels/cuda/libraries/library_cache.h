// The open libraries of this process.
#pragma once

#include <memory>

#include "core/kernels/cuda/libraries/library.h"

namespace sweep::cuda {

/// open_libraries(device), once per process and device: handles and probes cost a second, and a sweep makes
/// one engine per run. They stay open until the process ends. A library that is installed but would not open,
/// perhaps for lack of memory, is tried again the next time. Thread-safe; the libraries may be used by
/// several threads.
std::shared_ptr<const Libraries> shared_libraries(int device);

/// Forgets what is open, so that the next call opens it again. For tests, which install other stand-ins.
void forget_shared_libraries();

}  // namespace sweep::cuda
