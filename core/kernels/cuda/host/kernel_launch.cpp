#include "core/kernels/cuda/host/kernel_launch.h"

#include <map>
#include <mutex>
#include <stdexcept>

namespace sweep::cuda::host {
namespace {

// The kernels that have been launched, by their address.
class Kernels {
 public:
  void add(const void* kernel, const KernelType& type) {
    const std::scoped_lock lock(mutex_);
    types_.try_emplace(kernel, type);
  }
  const KernelType& find(const void* kernel) {
    const std::scoped_lock lock(mutex_);
    const auto found = types_.find(kernel);
    if (found == types_.end())
      throw std::logic_error("a kernel is launched that launch_kernel() does not know");
    return found->second;  // A map's elements stay where they are.
  }

 private:
  std::mutex mutex_;
  std::map<const void*, KernelType> types_;
};

Kernels& kernels() {
  static Kernels all;
  return all;
}

}  // namespace

void register_kernel(const void* kernel, const KernelType& type) { kernels().add(kernel, type); }

KernelLaunch::KernelLaunch(const void* kernel, Index3 grid, Index3 block, std::size_t shared_bytes,
                           void** arguments)
    : kernel_(kernel), grid_(grid), block_(block), shared_bytes_(shared_bytes) {
  const KernelType& type = kernels().find(kernel);
  call_ = type.call;
  for (std::size_t i = 0; i < type.parameter_bytes.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(arguments[i]);
    arguments_.emplace_back(from, from + type.parameter_bytes[i]);
  }
}

void KernelLaunch::run() const {
  std::vector<void*> pointers;
  for (const std::vector<std::byte>& argument : arguments_)
    pointers.push_back(const_cast<std::byte*>(argument.data()));
  run_grid(
      grid_, block_, shared_bytes_, [&] { call_(kernel_, pointers.data()); }, kernel_);
}

}  // namespace sweep::cuda::host
