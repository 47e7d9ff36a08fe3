#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/kernels/cpu/kernels/bf16/bf16_avx512.h"
#include "core/kernels/cpu/kernels/bf16/bf16_support.h"

namespace sweep {
namespace cpu {
namespace {

constexpr const char* kVariable = "SWEEP_BF16";

std::string setting() {
  const char* value = std::getenv(kVariable);
  return value == nullptr ? "" : value;
}

}  // namespace

const Bf16Kernels* bf16_hardware_kernels() {
#ifdef SWEEP_AVX512_BF16
  if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return &bf16_avx512_kernels();
#endif
  return nullptr;
}

const Bf16Kernels* bf16_kernels() {
  const std::string value = setting();
  if (value == "off") return nullptr;
  if (value == "emulate") return &bf16_emulated_kernels();
  return bf16_hardware_kernels();
}

}  // namespace cpu

std::optional<std::string> cpu_bf16_missing_reason() {
  if (cpu::bf16_kernels() != nullptr) return std::nullopt;
  if (cpu::setting() == "off")
    return std::string("precision bf16: the environment variable ") + cpu::kVariable + " turns it off";
#ifdef SWEEP_AVX512_BF16
  return "precision bf16: this CPU has no AVX512_BF16";
#else
  return "precision bf16: this build has no AVX512_BF16";
#endif
}

}  // namespace sweep
