// A kernel that was put on a stream, with its own copy of the arguments.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tests/cudart/grid.h"

namespace sweep::cuda::cudart {

class KernelLaunch {
 public:
  /// `kernel` has been passed to register_kernel(); otherwise throws std::logic_error. `arguments` are read
  /// now.
  KernelLaunch(const void* kernel, Index3 grid, Index3 block, std::size_t shared_bytes, void** arguments);

  /// Runs its grid, as run_grid().
  void run() const;

  /// Runs what its threads do before they wait for the previous kernel, now, and returns the rest.
  std::function<void()> start() const;

 private:
  std::function<void()> thread(bool early, bool rest) const;

  const void* kernel_;
  Index3 grid_, block_;
  std::size_t shared_bytes_;
  KernelType type_;
  std::vector<std::vector<std::byte>> arguments_;
};

}  // namespace sweep::cuda::cudart
