// CUDA's words for the C++ compiler, so that a kernel runs on the host: for tests on machines without a GPU.
//
// The blocks of a grid run one after the other. The threads of a block take turns: each runs until it ends or
// comes to a __syncthreads(), where it waits on a stack of its own for the others. A kernel that has no
// barriers is thereby a plain loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sweep::cuda::host {

struct Index3 {
  unsigned x, y, z;
};

// Of the thread that runs, as in CUDA.
extern constinit thread_local Index3 thread_index, block_index, block_size, grid_size;

// The block's shared memory beyond its __shared__ arrays.
extern constinit thread_local std::byte* block_memory;

/// Runs `thread` once for every thread of the grid. Throws std::logic_error if threads of a block end while
/// others wait for them at a barrier.
void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread);

/// What __syncthreads() does.
void wait_for_block();

/// In which order threads between two barriers, and blocks, take their turns. A kernel whose results depend
/// on it lacks a barrier, or looks at what another block writes.
enum class Order { kForward, kBackward };
void set_order(Order order);

/// How often run_grid() was called: kernels that the process ran.
std::uint64_t grids_run();

}  // namespace sweep::cuda::host

struct alignas(16) float4 {
  float x, y, z, w;
};

// clang-format off
#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define __syncthreads() ::sweep::cuda::host::wait_for_block()
#define threadIdx ::sweep::cuda::host::thread_index
#define blockIdx ::sweep::cuda::host::block_index
#define blockDim ::sweep::cuda::host::block_size
#define gridDim ::sweep::cuda::host::grid_size
// clang-format on
