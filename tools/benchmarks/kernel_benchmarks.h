// Benchmarks of single kernels, which engine_benchmark offers beside those of whole networks.
#pragma once

namespace sweep {

/// conv/SHAPE/forward, /weights and /input. FLOP/s count every multiply-add of the formula.
void register_conv_benchmarks();

}  // namespace sweep
