// What every file of kernels includes: CUDA's built-in words, or their stand-ins on the host, and launch().
//
// A kernel is written once, in CUDA, and compiled twice: by nvcc for GPUs, and by the C++ compiler for tests
// on machines without one, where <cuda_runtime.h> is that of tests/cudart. So that both mean the same,
// kernels use only threadIdx and its kin, __shared__ arrays of fixed size, __syncthreads() and the functions
// of this file: no warp intrinsics, no textures.
//
// Determinism: no atomics on floats. Every sum of floats has a fixed order, which depends on the shapes alone
// and never on the GPU or on which block finishes first. So a training gives the same bits on every run.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "core/kernels/cuda/runtime/runtime.h"

#if defined(__CUDACC__)
#include <cuda_pipeline_primitives.h>
#endif

/// Before a loop: it is not unrolled. nvcc unrolls most loops four times; a block that takes one small sample
/// then waits longer for instructions than for anything else.
#if defined(__CUDACC__)
#define SWEEP_ROLLED _Pragma("unroll 1")
#else
#define SWEEP_ROLLED
#endif

namespace sweep::cuda {

/// Threads of a block, unless a kernel has its own number. A power of two, for block_sum().
inline constexpr unsigned kThreads = 256;

inline __host__ __device__ int ceil_div(int count, int divisor) { return (count + divisor - 1) / divisor; }

/// Lays out dynamic shared memory: reserves `floats` after the `total` reserved so far, and returns where
/// they start, in floats. Arrays start at multiples of 16 bytes, for float4 access.
inline int reserve_floats(int& total, int floats) {
  const int start = total;
  total += ceil_div(floats, 4) * 4;
  return start;
}

/// Blocks of kThreads threads for a for_each_index() over `count`: one thread per index up to 4096 blocks,
/// which fill any GPU several times over. Beyond that each thread takes several indices.
inline Extent blocks_for(int count) {
  constexpr int kMax = 4096;
  const int blocks = ceil_div(count, static_cast<int>(kThreads));
  return {static_cast<unsigned>(blocks < kMax ? blocks : kMax)};
}

/// Calls body(i) for every i below `count`, spread over all threads of the grid (a grid-stride loop). count
/// <= 2^30.
template <class Body>
__device__ void for_each_index(int count, const Body& body) {
  const auto first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = first; i < count; i += step) body(i);
}

/// The sum, by +=, of one value per thread of the block, returned to every thread. A tree: its order depends
/// on kThreads alone. All kThreads threads of the block have to call it; it is a barrier.
template <class Number>
__device__ Number block_sum(Number value) {
  __shared__ Number shared[kThreads];
  __syncthreads();  // threads may still read the result of the previous call
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

/// Adds to a counter in shared or device memory that other threads add to at the same time. Integers only:
/// their sum does not depend on the order.
inline __device__ void add_atomically(std::uint32_t* counter, std::uint32_t more) {
#if defined(__CUDACC__)
  atomicAdd(counter, more);
#else
  cudart::add_atomically(counter, more);
#endif
}

/// The block's dynamic shared memory, Block::shared_bytes long. One array per kernel; its content is
/// undefined at first.
template <class T>
__device__ T* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ float4 sweep_dynamic_shared[];
  return reinterpret_cast<T*>(sweep_dynamic_shared);
#else
  return reinterpret_cast<T*>(cudart::block_memory);
#endif
}

/// Starts to copy a float, or four, from device memory to shared memory (cp.async). The data passes no
/// register, so a thread can have many copies in flight. Both pointers are multiples of the size.
template <class T>
__device__ void copy_async(T* shared, const T* global) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, float4>);
#if defined(__CUDACC__)
  __pipeline_memcpy_async(shared, global, sizeof(T));
#else
  cudart::copy_async(shared, global, sizeof(T));
#endif
}

/// Returns when the calling thread's copies are done. Other threads see them after a barrier.
inline __device__ void wait_for_copies() {
#if defined(__CUDACC__)
  __pipeline_commit();
  __pipeline_wait_prior(0);
#else
  cudart::wait_for_copies();
#endif
}

/// Threads of a block, and bytes of dynamic_shared(), at most shared_bytes_limit().
struct Block {
  Extent threads;
  std::size_t shared_bytes = 0;
};

/// Puts a kernel on the stream. A grid without blocks does nothing. The arguments are copied now; what they
/// point to has to be device memory that lives until the kernel is done.
template <class... Parameters, class... Arguments>
void launch(Stream& stream, void (*kernel)(Parameters...), Extent grid, const Block& block,
            const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  constexpr std::size_t kMaxParameterBytes = 4096;  // on every GPU; 32764 from compute capability 7.0 on
  static_assert((std::size_t{0} + ... + sizeof(Parameters)) <= kMaxParameterBytes);
  static_assert((... && std::is_trivially_copyable_v<Parameters>), "they are copied byte by byte");
  std::tuple<Parameters...> values(arguments...);
#if !defined(__CUDACC__)
  cudart::register_kernel(reinterpret_cast<const void*>(kernel), cudart::kernel_type(kernel));
#endif
  std::apply(
      [&](Parameters&... value) {
        void* pointers[] = {&value..., nullptr};
        start_kernel(stream, reinterpret_cast<const void*>(kernel), grid, block.threads, block.shared_bytes,
                     pointers);
      },
      values);
}

/// Blocks of Functor that have to fit on a multiprocessor at once, which limits their registers; 0: as many
/// as do.
template <class Functor>
constexpr unsigned resident_blocks() {
  if constexpr (requires { Functor::kResidentBlocks; }) return Functor::kResidentBlocks;
  return 0;
}

template <class Functor>
__global__ void __launch_bounds__(Functor::kMaxThreads, resident_blocks<Functor>())
    functor_kernel(const __grid_constant__ Functor functor) {
  functor();
}

/// Launches a kernel whose arguments are the members of an object and whose threads call the object. Functor
/// has `static constexpr unsigned kMaxThreads`, the threads of a block, and may have `kResidentBlocks`.
template <class Functor>
void launch_functor(Stream& stream, const Functor& functor, Extent grid, const Block& block) {
#if !defined(__CUDACC__)
  cudart::register_kernel(reinterpret_cast<const void*>(functor_kernel<Functor>),
                          cudart::functor_type<Functor>());
#endif
  launch(stream, functor_kernel<Functor>, grid, block, functor);
}

}  // namespace sweep::cuda
