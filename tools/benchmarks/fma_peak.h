// The peak rate of fused multiply-adds of a core, which kernels are compared with.
#pragma once

namespace sweep {

/// Runs `rounds` rounds of a loop of independent multiply-adds in registers, with the widest vectors of the
/// machine, on the calling thread, and returns the number of floating-point operations: two per multiply-add.
/// Takes about rounds × 12 cycles. Thread-safe.
double run_fma_rounds(long rounds);

}  // namespace sweep
