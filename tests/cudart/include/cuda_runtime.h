// CUDA's built-in words (threadIdx, __shared__, __syncthreads() …) for the C++ compiler, so that kernels run
// on the host in tests on machines without a GPU; see grid.h. Not together with CUDA's own headers.
#pragma once

#include "tests/cudart/grid.h"

struct alignas(16) float4 {
  float x, y, z, w;
};

// __shared__ arrays are thread_local, not per block: blocks of one host thread run one after the other.
// clang-format off
#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define __syncthreads() ::sweep::cuda::cudart::wait_for_block()
#define threadIdx ::sweep::cuda::cudart::thread_index
#define blockIdx ::sweep::cuda::cudart::block_index
#define blockDim ::sweep::cuda::cudart::block_size
#define gridDim ::sweep::cuda::cudart::grid_size
// clang-format on
