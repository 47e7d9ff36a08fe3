#include "core/kernels/cuda/work_clock.h"

namespace sweep::cuda {

WorkClock work_clock() { return {}; }

}  // namespace sweep::cuda
