#include "core/kernels/cuda/runtime/kernel_timer.h"

namespace sweep::cuda {

KernelTimer kernel_timer() { return {}; }

}  // namespace sweep::cuda
