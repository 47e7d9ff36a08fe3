#include "tests/cudart/kernel_launch.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace sweep::cuda::cudart {
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
    : kernel_(kernel),
      grid_(grid),
      block_(block),
      shared_bytes_(shared_bytes),
      type_(kernels().find(kernel)) {
  for (std::size_t i = 0; i < type_.parameter_bytes.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(arguments[i]);
    arguments_.emplace_back(from, from + type_.parameter_bytes[i]);
  }
}

// What runs one thread, or a part of it. It has its own copy of the arguments.
std::function<void()> KernelLaunch::thread(bool early, bool rest) const {
  struct Call {
    std::vector<std::vector<std::byte>> arguments;
    std::vector<void*> pointers;
  };
  const auto call = std::make_shared<Call>(Call{arguments_, {}});
  for (std::vector<std::byte>& argument : call->arguments) call->pointers.push_back(argument.data());
  const auto before = early ? type_.early : nullptr;
  const auto after = rest ? type_.call : nullptr;
  return [call, before, after, kernel = kernel_] {
    if (before != nullptr) before(kernel, call->pointers.data());
    if (after != nullptr) after(kernel, call->pointers.data());
  };
}

void KernelLaunch::run() const { run_grid(grid_, block_, shared_bytes_, thread(true, true), kernel_); }

std::function<void()> KernelLaunch::start() const {
  if (type_.early == nullptr) return [launch = *this] { launch.run(); };
  const auto started =
      std::make_shared<StartedGrid>(grid_, block_, shared_bytes_, thread(true, false), kernel_);
  return [started, rest = thread(false, true)] { started->finish(rest); };
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the function owns it

}  // namespace sweep::cuda::cudart
