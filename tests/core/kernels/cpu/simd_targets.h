// Runs a check once for each instruction set that the CPU kernels are compiled for and this machine has.
#pragma once

#include "core/kernels/cpu/simd/kernel.h"
#include "hwy/targets.h"
#include "tests/support/test.h"

namespace sweep::test {

/// Calls body(name of the target) with each target selected in turn, including the baseline; selects the best
/// one again afterwards. The selection is process-wide, so no other thread may use an engine meanwhile.
template <class Body>
void for_each_simd_target(const Body& body) {
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_NEON, HWY_SCALAR}) {
    hwy::SetSupportedTargetsForTest(0);
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body(simd_target_name());
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace sweep::test
