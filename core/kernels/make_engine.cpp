// Creates the engine for a device, and says how much memory it takes.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/engine_checks.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {
namespace {

void throw_if(const EngineOptions& options, const std::optional<std::string>& reason) {
  if (reason) throw DeviceError(options.device.name() + ": " + *reason);
}

std::unique_ptr<ReplicaEngine> make_replica(const Network& network, const EngineOptions& options,
                                            Communicator& group) {
  const bool cuda = options.device.type == DeviceType::kCuda;
  return (cuda ? make_cuda_replica : make_cpu_replica)(network, options, group);
}

}  // namespace

std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options) {
  check_options(options, network);
  throw_if(options, unavailable_reason(options.device));
  throw_if(options, parallel_unavailable_reason(network, options));
  const bool cuda = options.device.type == DeviceType::kCuda;
  if (options.parallel.data > 1) return make_threaded_engine(network, options, make_replica);
  if (cuda && options.parallel.has_stages())
    return make_staged_cuda_engine(network, options,
                                   split_into_stages(network, options.parallel, options.device));
  if (cuda) return make_cuda_engine(network, options);
  return make_cpu_engine(network, options);
}

std::optional<std::string> group_unavailable_reason(const Network& network, const EngineOptions& options,
                                                    int ranks) {
  const int data = options.parallel.data;
  const bool one_each = data > 1 && options.device.type == DeviceType::kCuda;
  EngineOptions own = options;  // of one process
  if (one_each) own.parallel.data = 1;
  auto reason = one_each ? device_group_unavailable_reason(options.device, data, data) : std::nullopt;
  if (!reason) reason = parallel_unavailable_reason(network, own);
  if (reason || data <= 1) return reason;
  if (one_each ? data == ranks : data % ranks == 0) return std::nullopt;
  return "got \"parallel\": {\"data\": " + std::to_string(data) + "} with " + std::to_string(ranks) +
         " MPI ranks, want " + std::to_string(ranks) +
         (one_each
              ? ", one GPU each, or one set of them; without an MPI launcher one process can have several"
              : " or a multiple of it");
}

std::unique_ptr<Engine> make_engine_on(Communicator& group, const Network& network,
                                       const EngineOptions& options) {
  if (options.parallel.data <= 1) return make_engine(network, options);
  check_options(options, network);
  throw_if(options, unavailable_reason(options.device));
  throw_if(options, group_unavailable_reason(network, options, group.size()));
  return make_group_engine(network, options, group, make_replica);
}

int serve_replicas(Communicator& group) { return serve_replicas(group, make_replica); }

std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options) {
  check_options(options, network);
  if (options.device.type != DeviceType::kCpu) return std::nullopt;
  return cpu_engine_memory(network, options);
}

}  // namespace sweep
