// The kernels that only processors with AVX512_BF16 can run.
#pragma once

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"

namespace sweep::cpu {

/// Only bf16_hardware_kernels() may call this, which checks the processor first.
const Bf16Kernels& bf16_avx512_kernels();

}  // namespace sweep::cpu
