// Whether, and how, the CPU engine computes with bf16 here.
#pragma once

#include <optional>
#include <string>

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"

namespace sweep {
namespace cpu {

/// What the engine uses: the hardware's kernels, or nullptr without. The environment variable SWEEP_BF16 can
/// say otherwise: "off" is as if the hardware had none, "emulate" takes bf16_emulated_kernels().
const Bf16Kernels* bf16_kernels();

}  // namespace cpu

/// Why bf16_kernels() has none, or nothing if it has.
std::optional<std::string> cpu_bf16_missing_reason();

}  // namespace sweep
