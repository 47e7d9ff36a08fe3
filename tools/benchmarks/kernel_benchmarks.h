// Benchmarks of single kernels, part of engine_benchmark.
#pragma once

namespace sweep {

/// Registers conv/SHAPE/forward, /weights and /input with Google Benchmark, and /winograd variants
/// where the engine has them. FLOP/s count every multiply-add of the direct formula.
void register_conv_benchmarks();

}  // namespace sweep
