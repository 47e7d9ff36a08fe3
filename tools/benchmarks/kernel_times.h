// How long each kernel of a training step takes, by events of the device before and after it. Part of
// engine_benchmark, which is linked with --wrap=cudaLaunchKernel: the engine itself is unchanged.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

namespace sweep {

/// While one exists, each kernel that is captured in a graph has an event before and after it, so none starts
/// early. Sees the engine's own kernels, not those of NVIDIA's libraries. One at a time; not thread-safe.
/// Throws DeviceError if CUDA reports an error.
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
