#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "tests/cudart/grid.h"

namespace sweep::cuda::cudart {
namespace {

// The kernels that have been launched, by their address.
struct Kernels {
  std::mutex mutex;
  std::map<const void*, KernelType> types;
};

Kernels& kernels() {
  static Kernels all;
  return all;
}

}  // namespace

void register_kernel(const void* kernel, const KernelType& type) {
  const std::scoped_lock lock(kernels().mutex);
  kernels().types.try_emplace(kernel, type);
}

const KernelType& type_of(const void* kernel) {
  const std::scoped_lock lock(kernels().mutex);
  const auto found = kernels().types.find(kernel);
  if (found == kernels().types.end())
    throw std::logic_error("a kernel is launched that launch() does not know");
  return found->second;  // A map's elements stay where they are.
}

std::function<void()> launch_of(const void* kernel, Index3 grid, Index3 block, std::size_t shared_bytes,
                                void** arguments) {
  struct Call {
    const KernelType& type;
    std::vector<std::vector<std::byte>> arguments;
    std::vector<void*> pointers;
  };
  const auto call = std::make_shared<Call>(Call{type_of(kernel), {}, {}});
  for (std::size_t i = 0; i < call->type.parameter_bytes.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(arguments[i]);
    call->arguments.emplace_back(from, from + call->type.parameter_bytes[i]);
  }
  for (std::vector<std::byte>& argument : call->arguments) call->pointers.push_back(argument.data());
  return
      [=] { run_grid(grid, block, shared_bytes, [&] { call->type.call(kernel, call->pointers.data()); }); };
}

}  // namespace sweep::cuda::cudart
