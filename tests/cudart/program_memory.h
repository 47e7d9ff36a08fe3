// Where the memory of the running program lies, as far as observers of grids have to know it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sweep::cuda::cudart {

/// Addresses begin … end − 1.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};
Range range_of(std::span<const std::byte> bytes);

struct ProgramMemory {
  std::uintptr_t base = 0;  // of its code: what addr2line takes is counted from here
  Range variables;          // the calling thread's thread_local ones, which static __shared__ arrays are
};
ProgramMemory find_program_memory();

}  // namespace sweep::cuda::cudart
