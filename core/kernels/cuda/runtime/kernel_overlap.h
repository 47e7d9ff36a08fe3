// Whether consecutive kernels of a stream may overlap.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sweep::cuda {

/// Unless SWEEP_CUDA_OVERLAP is "0": programmatic dependent launch. The GPU then starts a kernel while the
/// one before it still runs, and the new kernel's blocks wait in wait_for_previous_kernel(), so the latency
/// of a launch, and what a kernel can load before, is hidden. No result depends on it.
inline bool kernels_may_overlap() {
  const char* value = std::getenv("SWEEP_CUDA_OVERLAP");
  return value == nullptr || std::string_view(value) != "0";
}

}  // namespace sweep::cuda
