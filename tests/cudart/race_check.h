// Finds races in kernels that run on the host, as compute-sanitizer's racecheck does on a GPU, and also in
// device memory.
//
// The kernels have to be compiled with -fsanitize=thread; see access_hooks.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/cudart/grid_observer.h"

namespace sweep::cuda::cudart {

/// Watches the grids that the thread which makes it runs, as long as it lives; one at a time per thread. What
/// it reports:
/// - two threads of a block that access the same byte between two barriers, one of them writing;
/// - two blocks of a grid that access the same byte of device memory, one of them writing;
/// - reading static shared memory that only an earlier block has written.
/// Atomic additions are no race among each other. It does not depend on the order in which threads and blocks
/// run (see Order). Kernels on one stream come one after the other and cannot race.
class RaceCheck final : public GridObserver {
 public:
  RaceCheck();
  ~RaceCheck() override;
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;

  /// What was found, a line each: the two accesses, their threads and blocks, and where the second one is in
  /// the program's code, as an address for addr2line. One line for each place in the code.
  const std::vector<std::string>& races() const;

  /// Bytes that were looked at, so that a test can tell that kernels are watched.
  std::uint64_t accesses() const;

  void begin_grid(std::uint64_t grid) override;
  void begin_block(std::span<const std::byte> shared) override;
  void pass_barrier() override;
  void run_on(std::span<const std::byte> stack) override;
  void access(const MemoryAccess& access) override;

  struct Implementation;

 private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep::cuda::cudart
