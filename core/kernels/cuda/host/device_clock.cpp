#include "core/kernels/cuda/device_clock.h"

namespace sweep::cuda {

DeviceClock device_clock() { return {}; }

}  // namespace sweep::cuda
