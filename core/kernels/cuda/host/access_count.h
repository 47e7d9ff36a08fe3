// Counts what kernels that run on the host would ask of a GPU's memory: wavefronts of shared memory, with its
// bank conflicts, and sectors of device memory.
//
// The kernels have to be compiled with -fsanitize=thread; see access_hooks.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/cuda/host/grid_observer.h"
#include "core/kernels/cuda/runtime/host_grid.h"

namespace sweep::cuda::host {

/// Requests of warps to one kind of memory.
struct RequestTotals {
  std::uint64_t requests = 0;         // instructions of a warp
  std::uint64_t lanes = 0;            // that took part in them, together
  std::uint64_t cost = 0, ideal = 0;  // see RequestCost

  /// cost / ideal: 1 if lanes are never in each other's way, or if there is no request.
  double factor() const;
  RequestTotals& operator+=(const RequestTotals& more);
};

/// What the warps of a block do between two barriers.
struct IntervalCounts {
  std::uint32_t shared_requests = 0, shared_wavefronts = 0;  // of all warps
  std::uint32_t device_requests = 0, device_sectors = 0;
  std::uint32_t longest_shared = 0, longest_device = 0;  // most read requests of one warp
};

/// One grid. Sums are those of the blocks that were watched.
struct GridCounts {
  const void* kernel = nullptr;
  Index3 grid, block;
  std::size_t shared_bytes = 0;  // dynamic
  std::uint64_t blocks = 0, watched_blocks = 0;
  RequestTotals shared_reads = {}, shared_writes = {}, device_reads = {}, device_writes = {};
  std::vector<IntervalCounts> intervals = {};  // of block 0
};

/// Watches the grids that the thread which makes it runs, as long as it lives; one observer at a time per
/// thread. Device memory is what Memory has allocated.
///
/// The accesses of a warp's 32 threads that stand at the same place in the code, and are the same in number
/// since the last barrier, are taken for one instruction. This is what a GPU does unless threads take
/// different numbers of turns in loops within loops. What a thread accesses in one aligned piece of 16 bytes
/// by instructions that always follow each other is one access of up to 16 bytes, as nvcc makes of a float4;
/// which these are is found out meanwhile, so counts should be those of a second run, after restart().
/// Instructions are those of the host's compiler: it may keep a value in a register that nvcc reads again, or
/// the other way round.
class AccessCount final : public GridObserver {
 public:
  /// `most_accesses`: about how many accesses of threads are looked at in each grid. The blocks that are
  /// watched are spread over the grid, the first is always one of them.
  explicit AccessCount(std::uint64_t most_accesses = std::numeric_limits<std::uint64_t>::max());
  ~AccessCount() override;
  AccessCount(const AccessCount&) = delete;
  AccessCount& operator=(const AccessCount&) = delete;

  /// The grids since the beginning or the last restart(), in the order in which they began.
  const std::vector<GridCounts>& grids() const;
  /// Forgets the grids.
  void restart();

  void begin_grid(const GridPart& part) override;
  void end_grid() override;
  void begin_block(std::span<const std::byte> shared) override;
  void pass_barrier() override;
  void run_on(std::span<const std::byte> stack) override;
  void access(const MemoryAccess& access) override;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep::cuda::host
