// Creates the engine for a device, and says how much memory it takes.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/engine_memory.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/group_engine.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {

std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options) {
  if (auto reason = unavailable_reason(options.device, options.precision))
    throw DeviceError(options.device.name() + ": " + *reason);
  if (auto reason = parallel_unavailable_reason(options.device, options.parallel, network, options.loss))
    throw DeviceError(options.device.name() + ": " + *reason);
  const bool cuda = options.device.type == DeviceType::kCuda;
  if (options.parallel.data > 1)
    return make_threaded_engine(network, options, cuda ? make_cuda_replica : make_cpu_replica);
  if (cuda) return make_cuda_engine(network, options);
  return make_cpu_engine(network, options);
}

std::unique_ptr<Engine> make_engine_on(Communicator& group, const Network& network,
                                       const EngineOptions& options) {
  if (options.parallel.data <= 1) return make_engine(network, options);
  if (auto reason = unavailable_reason(options.device, options.precision))
    throw DeviceError(options.device.name() + ": " + *reason);
  if (auto reason = parallel_unavailable_reason(options.device, options.parallel, network, options.loss))
    throw DeviceError(options.device.name() + ": " + *reason);
  if (options.device.type == DeviceType::kCuda)
    throw DeviceError(options.device.name() +
                      ": one network on GPUs of several processes is not implemented");
  return make_group_engine(network, options, group, make_cpu_replica);
}

int serve_replicas(Communicator& group) { return serve_replicas(group, make_cpu_replica); }

std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options,
                                         std::size_t profiled) {
  if (options.device.type != DeviceType::kCpu) return std::nullopt;
  return cpu_engine_memory(network, options, profiled);
}

}  // namespace sweep
