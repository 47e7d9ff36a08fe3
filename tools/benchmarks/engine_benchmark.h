// Parts of engine_benchmark.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

namespace sweep {

/// Runs `rounds` rounds of a loop of independent multiply-adds in registers, with the widest vectors of the
/// machine, on the calling thread, and returns the number of floating-point operations: two per multiply-add.
/// Takes about rounds × 12 cycles. Thread-safe.
double run_fma_rounds(long rounds);

/// Registers conv/SHAPE/forward, /weights and /input with Google Benchmark, and /winograd variants
/// where the engine has them. FLOP/s count every multiply-add of the direct formula.
void register_conv_benchmarks();

/// How long each kernel of a training step takes, by events of the device before and after it. While one
/// exists, each kernel that is captured in a graph has them, so none starts early. The program is linked with
/// --wrap=cudaLaunchKernel: the engine itself is unchanged. Sees the engine's own kernels, not those of
/// NVIDIA's libraries. One at a time; not thread-safe. Throws DeviceError if CUDA reports an error.
class KernelTimes {
 public:
  KernelTimes();
  ~KernelTimes();
  KernelTimes(const KernelTimes&) = delete;
  KernelTimes& operator=(const KernelTimes&) = delete;

  /// Adds the times of the last launch of the captured graph, which is done. Every graph that was captured
  /// meanwhile has been launched.
  void add_step();

  /// Medians over all add_step(), in microseconds: {"steps", "step_us", from the first event to the last;
  /// "kernels": [{"name", "us"}], in order}.
  nlohmann::ordered_json json() const;

  struct Launches;

 private:
  std::unique_ptr<Launches> launches_;
};

}  // namespace sweep
