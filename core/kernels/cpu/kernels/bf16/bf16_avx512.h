// The kernels of a source that only processors with AVX512_BF16 can run.
#pragma once

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"

namespace sweep::cpu {

/// Only for bf16_hardware_kernels(), which asks the processor first.
const Bf16Kernels& bf16_avx512_kernels();

}  // namespace sweep::cpu
