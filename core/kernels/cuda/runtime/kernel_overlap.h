// Whether consecutive kernels of a stream may overlap.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sweep::cuda {

/// Whether SWEEP_CUDA_OVERLAP is "1": programmatic dependent launch. The GPU then starts a kernel while the
/// one before it still runs, and the new kernel's blocks wait in wait_for_previous_kernel(), so the latency
/// of a launch is hidden. Off unless asked for, because the gain has to be measured on each kind of GPU. No
/// result depends on it.
inline bool kernels_may_overlap() {
  const char* value = std::getenv("SWEEP_CUDA_OVERLAP");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace sweep::cuda
