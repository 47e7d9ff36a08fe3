#include "core/kernels/cuda/runtime/work_clock.h"

namespace sweep::cuda {

WorkClock work_clock() { return {}; }

}  // namespace sweep::cuda
