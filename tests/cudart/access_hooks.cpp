// What the compiler calls in code compiled with -fsanitize=thread, at every access to memory: here it tells
// the RaceCheck of the grid that runs, in place of ThreadSanitizer.
#include "tests/cudart/race_check.h"

namespace {

using sweep::cuda::cudart::AccessKind;

inline void note(const void* address, std::size_t bytes, AccessKind kind, const void* code) {
  if (auto* const check = sweep::cuda::cudart::running_race_check())
    check->access(address, bytes, kind, code);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): the compiler's names
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define SWEEP_ACCESS(name, bytes, kind) \
  void __tsan_##name(void* address) { note(address, bytes, kind, __builtin_return_address(0)); }
#define SWEEP_ACCESSES(bytes)                                   \
  SWEEP_ACCESS(read##bytes, bytes, AccessKind::kRead)           \
  SWEEP_ACCESS(write##bytes, bytes, AccessKind::kWrite)         \
  SWEEP_ACCESS(unaligned_read##bytes, bytes, AccessKind::kRead) \
  SWEEP_ACCESS(unaligned_write##bytes, bytes, AccessKind::kWrite)
SWEEP_ACCESSES(1)
SWEEP_ACCESSES(2)
SWEEP_ACCESSES(4)
SWEEP_ACCESSES(8)
SWEEP_ACCESSES(16)
#undef SWEEP_ACCESSES
#undef SWEEP_ACCESS

void __tsan_read_range(void* address, std::size_t bytes) {
  note(address, bytes, AccessKind::kRead, __builtin_return_address(0));
}
void __tsan_write_range(void* address, std::size_t bytes) {
  note(address, bytes, AccessKind::kWrite, __builtin_return_address(0));
}
void __tsan_vptr_update(void** address, void*) {
  note(address, sizeof *address, AccessKind::kWrite, __builtin_return_address(0));
}

// For the host's counters, as in std::shared_ptr; kernels have add_atomically().
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* counter, std::uint32_t more, int) {
  return __atomic_fetch_add(counter, more, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_fetch_sub(volatile std::uint32_t* counter, std::uint32_t less, int) {
  return __atomic_fetch_sub(counter, less, __ATOMIC_SEQ_CST);
}
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
