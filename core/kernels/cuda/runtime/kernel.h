// What every file of kernels includes: CUDA's words, or the host's stand-ins for them, and launch().
//
// A kernel is written once, in CUDA, and compiled twice: by nvcc for GPUs, and by the C++ compiler for tests
// on machines without one (see host/words.h). So that both mean the same, kernels keep to threadIdx and its
// kin, __shared__ arrays of fixed size, __syncthreads(), and the functions of this file; they have no atomics
// but of integers, so that every sum of floats has one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "core/kernels/cuda/runtime/runtime.h"

#if defined(__CUDACC__)
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#else
#include "core/kernels/cuda/runtime/host_builtins.h"
#endif

namespace sweep::cuda {

/// Threads of a block, unless the kernel says otherwise. A power of two.
inline constexpr unsigned kThreads = 256;

/// Blocks or threads along x, y and z.
struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

inline __host__ __device__ int ceil_div(int count, int share) { return (count + share - 1) / share; }

/// Lays out shared memory: where the next array of so many floats begins, on 16 bytes, after those that
/// `total`, which grows, has counted.
inline int reserve_floats(int& total, int floats) {
  const int at = total;
  total += ceil_div(floats, 4) * 4;
  return at;
}

/// Blocks of kThreads threads for a kernel with for_each_index(): enough to fill any GPU, and no more.
inline Extent blocks_for(int count) {
  constexpr int kMax = 4096;
  const int blocks = ceil_div(count, static_cast<int>(kThreads));
  return {static_cast<unsigned>(blocks < kMax ? blocks : kMax)};
}

/// Calls body(i) for every i below `count`, shared out over all threads of the grid. count <= 2^30.
template <class Body>
__device__ void for_each_index(int count, const Body& body) {
  const auto first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = first; i < count; i += step) body(i);
}

/// The sum, by +=, of the values of a block's threads, in every thread, added in an order that depends on
/// their number alone. All kThreads threads of the block have to call it; it is a barrier.
template <class Number>
__device__ Number block_sum(Number value) {
  __shared__ Number shared[kThreads];
  __syncthreads();  // The last call's result may still be read.
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

/// Adds to a counter, in shared memory or the device's, that other threads add to at the same time.
inline __device__ void add_atomically(std::uint32_t* counter, std::uint32_t more) {
#if defined(__CUDA_ARCH__)
  atomicAdd(counter, more);
#elif !defined(__CUDACC__)
  *counter += more;
#else
  (void)counter, (void)more;  // nvcc's pass for the host
#endif
}

/// The block's shared memory whose size the launch gives. One array per kernel; its content is undefined at
/// first.
template <class T>
__device__ T* dynamic_shared() {
#if defined(__CUDA_ARCH__)
  extern __shared__ float4 sweep_launched_shared[];
  return reinterpret_cast<T*>(sweep_launched_shared);
#elif defined(__CUDACC__)
  return nullptr;  // nvcc's pass for the host
#else
  return reinterpret_cast<T*>(host::block_memory);
#endif
}

/// Starts to copy a float from the device's memory to shared memory, without a register between them, so that
/// a thread can have many on their way. Both pointers are multiples of four bytes.
inline __device__ void copy_async(float* shared, const float* global) {
#if defined(__CUDA_ARCH__)
  __pipeline_memcpy_async(shared, global, sizeof(float));
#elif !defined(__CUDACC__)
  *shared = *global;
#else
  (void)shared, (void)global;  // nvcc's pass for the host
#endif
}

/// Returns when the thread's copies are done; other threads see them after a barrier.
inline __device__ void wait_for_copies() {
#if defined(__CUDA_ARCH__)
  __pipeline_commit();
  __pipeline_wait_prior(0);
#endif
}

/// Threads of a block, and bytes of dynamic_shared(), at most shared_bytes_limit().
struct Block {
  Extent threads;
  std::size_t shared_bytes = 0;
};
inline constexpr std::size_t kSharedBytes = std::size_t{48} << 10;  // what every GPU has

/// Puts a kernel at the end of the stream's work. A grid without blocks does nothing. The arguments are
/// copied; what they point to has to be memory of the device, alive until the kernel is done. `overlaps`:
/// whether the kernel calls wait_for_previous_kernel() before all else.
template <class... Parameters, class... Arguments>
void launch_kernel(Stream& stream, void (*kernel)(Parameters...), Extent grid, const Block& block,
                   bool overlaps, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  std::tuple<Parameters...> values(arguments...);
#if defined(__CUDACC__)
  std::apply(
      [&](Parameters&... value) {
        void* pointers[] = {&value..., nullptr};
        start_kernel(stream, reinterpret_cast<const void*>(kernel), {grid.x, grid.y, grid.z},
                     {block.threads.x, block.threads.y, block.threads.z}, block.shared_bytes, overlaps,
                     pointers);
      },
      values);
#else
  static_cast<void>(overlaps);
  stream.enqueue([kernel, values, grid, block] {
    host::run_grid({grid.x, grid.y, grid.z}, {block.threads.x, block.threads.y, block.threads.z},
                   block.shared_bytes, [&] { std::apply(kernel, values); });
  });
#endif
}

/// The same, for a kernel that starts when all before it is done.
template <class... Parameters, class... Arguments>
void launch(Stream& stream, void (*kernel)(Parameters...), Extent grid, const Block& block,
            const Arguments&... arguments) {
  launch_kernel(stream, kernel, grid, block, false, arguments...);
}

/// Returns when the kernels before this one are done and what they wrote can be read; then lets the next one
/// be started, which will wait here, too. So a kernel's start takes no time of its own.
inline __device__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

template <class Body>
__global__ void __launch_bounds__(Body::kMaxThreads) functor_kernel(const __grid_constant__ Body body) {
  wait_for_previous_kernel();
  body();
}

/// Launches a kernel whose arguments are the members of an object and whose threads call it: body(). It has
/// `static constexpr unsigned kMaxThreads`, of a block. Such kernels may be started while the one before
/// them still works: there is no way for them to touch its results too early.
template <class Body>
void launch_functor(Stream& stream, const Body& body, Extent grid, const Block& block) {
  launch_kernel(stream, functor_kernel<Body>, grid, block, true, body);
}

}  // namespace sweep::cuda
