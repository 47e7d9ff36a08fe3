// The whole folder in a build without a CUDA toolkit.
#include "core/base/error.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> cuda_missing_reason() {
  return "this build has no CUDA: no CUDA toolkit was found when it was configured";
}

std::optional<std::string> cuda_device_reason(const DeviceInfo& /*device*/) { return cuda_missing_reason(); }

bool cuda_device_is_lost(int /*index*/) { return false; }

std::optional<std::string> nccl_missing_reason() { return cuda_missing_reason(); }

std::vector<DeviceInfo> list_cuda_devices() { return {}; }

std::vector<LibraryInfo> list_cuda_libraries() { return {}; }

std::unique_ptr<Engine> make_cuda_engine(const Network& /*network*/, const EngineOptions& options) {
  throw DeviceError(options.device.name() + ": " + *cuda_missing_reason());
}

std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& /*stages*/) {
  return make_cuda_engine(network, options);
}

std::unique_ptr<ReplicaEngine> make_cuda_replica(const Network& /*network*/, const EngineOptions& options,
                                                 Communicator& /*group*/) {
  throw DeviceError(options.device.name() + ": " + *cuda_missing_reason());
}

}  // namespace sweep
