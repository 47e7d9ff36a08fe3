// nccl.h in a build with CUDA, but without NCCL's header.
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() {
  return "several GPUs train one network through NCCL, which this build cannot use: there was no nccl.h when "
         "it was configured";
}

namespace cuda {

struct DeviceGroup::Implementation {};

DeviceGroupId DeviceGroup::make_id() { throw DeviceError(*nccl_missing_reason()); }
DeviceGroup::DeviceGroup(const DeviceGroupId& /*id*/, int /*rank*/, int /*size*/, double /*deadline*/,
                         std::function<void()> /*check*/) {
  throw DeviceError(*nccl_missing_reason());
}
DeviceGroup::~DeviceGroup() = default;
void DeviceGroup::all_gather(Stream& /*stream*/, std::byte* /*data*/,
                             std::span<const std::size_t> /*begins*/) {}
void DeviceGroup::wait(Stream& /*stream*/) {}
void DeviceGroup::wait(const Event& /*event*/) {}
void DeviceGroup::abort() noexcept {}

}  // namespace cuda
}  // namespace sweep
