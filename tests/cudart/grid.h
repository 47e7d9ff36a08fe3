// Runs the grids of kernels on the host.
//
// The blocks of a grid run one after the other. The threads of a block are fibers on one host thread and take
// turns: each runs until it ends or reaches a __syncthreads(), where it waits for the others of its block. So
// a kernel without barriers is a plain loop. The schedule is deterministic, in one of several orders (see
// Order).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace sweep::cuda::cudart {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// threadIdx, blockIdx, blockDim and gridDim of the fiber that runs.
extern constinit thread_local Index3 thread_index, block_index, block_size, grid_size;

// The block's dynamic shared memory.
extern constinit thread_local std::byte* block_memory;

/// Runs `thread` once for every thread of the grid. `shared_bytes`: dynamic shared memory of a block. Throws
/// std::logic_error for more threads, blocks or shared memory than a GPU takes, if threads of a block end
/// while others wait for them at a barrier, and if a kernel ends before its copies have arrived: on a GPU
/// those are errors or undefined.
void run_grid(Index3 grid, Index3 block, std::size_t shared_bytes, const std::function<void()>& thread);

/// __syncthreads().
void wait_for_block();

/// What a launch has to know of a kernel: the bytes of its parameters, and how one of its threads is run with
/// pointers to the arguments.
struct KernelType {
  std::vector<std::vector<std::byte>> parameters;  // 0 for bytes of padding, in which may be anything
  void (*call)(const void* kernel, void** arguments);
  const char* name;  // of the kernel's type, as the compiler has it
};
/// Before each launch of `kernel`; the first type that it is registered with counts. Thread-safe.
void register_kernel(const void* kernel, const KernelType& type);
/// Throws std::logic_error if `kernel` is not registered.
const KernelType& type_of(const void* kernel);

/// The grid of a kernel with its own copy of the arguments, to be run as by run_grid(). `kernel` has been
/// passed to register_kernel(); otherwise throws std::logic_error. `arguments` are read now.
std::function<void()> launch_of(const void* kernel, Index3 grid, Index3 block, std::size_t shared_bytes,
                                void** arguments);

template <class... Parameters>
void call_kernel(const void* kernel, void** arguments) {
  [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel))(
        *static_cast<Parameters*>(arguments[kIndices])...);
  }
  (std::index_sequence_for<Parameters...>());
}

// Where the compiler does not tell, all of what may have padding counts as such.
template <class Parameter>
std::vector<std::byte> bytes_of_parameter() {
  std::vector<std::byte> bytes(sizeof(Parameter), std::byte{0xFF});
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(reinterpret_cast<Parameter*>(bytes.data()));
#else
  if (!std::has_unique_object_representations_v<Parameter>) bytes.assign(sizeof(Parameter), std::byte{0});
#endif
  return bytes;
}

template <class... Parameters>
KernelType kernel_type(void (*)(Parameters...)) {
  return {{bytes_of_parameter<Parameters>()...},
          &call_kernel<Parameters...>,
          typeid(void (*)(Parameters...)).name()};
}

/// The host's form of functor_kernel<Functor>(), which is not called itself.
template <class Functor>
KernelType functor_type() {
  return {{bytes_of_parameter<Functor>()},
          [](const void*, void** arguments) { (*static_cast<const Functor*>(arguments[0]))(); },
          typeid(Functor).name()};
}

/// The functions of the same names in kernel.h. A copy arrives when its thread waits for it, not before: a
/// thread that forgets to wait reads what was there. The kernel throws std::logic_error if an address is no
/// multiple of `bytes`.
void add_atomically(std::uint32_t* counter, std::uint32_t more);
void copy_async(void* shared, const void* global, std::size_t bytes);
void wait_for_copies();

/// In which order the threads of a block between two barriers, and the blocks of a grid, take their turns. A
/// kernel whose results differ between two orders lacks a barrier, or reads what another block writes.
/// kRandom: another order for every block, which depends on the seed and on the kernels that the thread ran
/// before. Process-wide.
enum class Order { kForward, kBackward, kRandom };
void set_order(Order order, std::uint64_t seed = 0);

/// The grid of the kernel that ran last on this thread.
Index3 last_grid();

}  // namespace sweep::cuda::cudart
