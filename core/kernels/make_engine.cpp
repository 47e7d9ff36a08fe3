// Creates the engine for a device, and says how much memory it takes.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/engine_memory.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cuda/cuda_engine.h"

namespace sweep {

std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options) {
  if (auto reason = unavailable_reason(options.device, options.precision))
    throw DeviceError(options.device.name() + ": " + *reason);
  if (options.device.type == DeviceType::kCuda) return make_cuda_engine(network, options);
  return make_cpu_engine(network, options);
}

std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options,
                                         std::size_t profiled) {
  if (options.device.type != DeviceType::kCpu) return std::nullopt;
  return cpu_engine_memory(network, options, profiled);
}

}  // namespace sweep
