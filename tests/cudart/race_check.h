// Finds races in kernels that run on the host, as compute-sanitizer's racecheck does on a GPU, and also in
// device memory.
//
// The kernels have to be compiled with -fsanitize=thread; see access_hooks.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sweep::cuda::cudart {

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

/// Watches the grids that the thread which makes it runs, as long as it lives; one at a time per thread. What
/// it reports:
/// - two threads of a block that access the same byte between two barriers, one of them writing;
/// - two blocks of a grid that access the same byte of device memory, one of them writing;
/// - reading static shared memory that only an earlier block has written.
/// Atomic additions are no race among each other. It does not depend on the order in which threads and blocks
/// run (see Order). Kernels on one stream come one after the other and cannot race.
class RaceCheck {
 public:
  RaceCheck();
  ~RaceCheck();
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;

  /// What was found, a line each: the two accesses, their threads and blocks, and where the second one is in
  /// the program's code, as an address for addr2line. One line for each place in the code.
  const std::vector<std::string>& races() const;

  /// Bytes that were looked at, so that a test can tell that kernels are watched.
  std::uint64_t accesses() const;

  // What the thread that runs a grid tells, between the kernel's own instructions.

  /// `grid`: its number, from 1.
  void begin_grid(std::uint64_t grid);
  /// `shared`: the block's dynamic shared memory.
  void begin_block(std::span<const std::byte> shared);
  /// All threads of the block have reached a barrier and go on.
  void pass_barrier();
  /// Threads of the block run on `stack` from now on; see thread_index in grid.h for which.
  void run_on(std::span<const std::byte> stack);
  /// The thread reads or writes memory, also its own stack, or a copy of it to shared memory does. Plain
  /// accesses are seen only in kernels that are compiled for it, see access_hooks.cpp; atomic ones and copies
  /// always. `code`: its place in the program.
  void access(const void* address, std::size_t bytes, AccessKind kind, const void* code);

 private:
  struct Implementation;

  std::unique_ptr<Implementation> implementation_;
};

/// The check of the grids that the calling thread runs; nullptr, the default: none.
void set_race_check(RaceCheck* check);
/// That check while a grid runs on the calling thread, else nullptr.
RaceCheck* running_race_check();

}  // namespace sweep::cuda::cudart
