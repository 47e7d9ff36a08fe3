// Batch normalisation and pooling as plain loops, for the stand-in libraries.
#pragma once

#include "core/kernels/cuda/libraries/library.h"

namespace sweep::cuda::host {

/// Does the work of `task` now, on host memory; see LibraryArrays.
void run_reference(const BatchNormShape& shape, const LibraryTask& task, const LibraryArrays& arrays);
void run_reference(const PoolLayer& layer, const LibraryTask& task, const LibraryArrays& arrays);

}  // namespace sweep::cuda::host
