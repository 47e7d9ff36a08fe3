// Somebody who is told what the blocks and threads of a grid do on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sweep::cuda::cudart {

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

/// An access of the thread that runs. `code`: where it stands in the program.
struct MemoryAccess {
  const void* address;
  std::size_t bytes;
  AccessKind kind;
  const void* code;
};

/// Its functions are called on the thread that runs the grid, between the kernel's own instructions.
class GridObserver {
 public:
  virtual ~GridObserver() = default;

  /// `grid`: its number, from 1.
  virtual void begin_grid(std::uint64_t grid) = 0;
  /// `shared`: the block's dynamic shared memory.
  virtual void begin_block(std::span<const std::byte> shared) = 0;
  /// All threads of the block have reached a barrier and go on.
  virtual void pass_barrier() = 0;
  /// Threads of the block run on `stack` from now on; see thread_index in host_builtins.h for which.
  virtual void run_on(std::span<const std::byte> stack) = 0;
  /// The thread reads or writes memory, its own stack, too, or a copy of it to shared memory does. Plain
  /// accesses are seen only in kernels that are compiled for it, see access_hooks.cpp; atomic ones and copies
  /// always.
  virtual void access(const MemoryAccess& access) = 0;
};

/// The observer of the grids that the calling thread runs; nullptr, the default: none. It has to live until
/// the next call.
void set_grid_observer(GridObserver* observer);

/// That observer while a grid runs on the calling thread, else nullptr.
GridObserver* running_grid_observer();

}  // namespace sweep::cuda::cudart
