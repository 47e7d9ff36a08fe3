// Whether the CPU engine can compute with bf16 on this machine.
#pragma once

#include <optional>
#include <string>

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"

namespace sweep {
namespace cpu {

/// The kernels that the engine uses: bf16_hardware_kernels(), which may be nullptr. The environment variable
/// SWEEP_BF16 overrides this: "off" means nullptr, "emulate" bf16_emulated_kernels().
const Bf16Kernels* bf16_kernels();

}  // namespace cpu

/// Why bf16_kernels() is nullptr, as a message for users; nothing if it is not.
std::optional<std::string> cpu_bf16_missing_reason();

}  // namespace sweep
