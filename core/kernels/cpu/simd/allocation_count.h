// Counts what buffers would take, without the memory.
#pragma once

#include <cstddef>

namespace sweep::cpu {

/// While one exists, AlignedBuffers that are made on its thread have a size and an address, but no memory:
/// only their bytes are counted. Nobody may read or write them. So the sizes of an engine's buffers come from
/// the code that allocates them.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::size_t bytes() const { return bytes_; }

  /// Whether the calling thread counts; then adds `bytes`.
  static bool add(std::size_t bytes);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace sweep::cpu
