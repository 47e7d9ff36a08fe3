// How fast a core multiplies and adds when nothing else holds it up: the limit that kernels are held against.
#pragma once

namespace sweep {

/// Multiply-adds times two that one thread does in `rounds` rounds of a loop over independent sums in
/// registers, with the widest vectors that the machine has. Takes about rounds × 12 cycles.
double run_fma_rounds(long rounds);

}  // namespace sweep
