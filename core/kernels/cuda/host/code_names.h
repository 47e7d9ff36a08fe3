// The names of functions in the running program.
#pragma once

#include <string>

namespace sweep::cuda::host {

/// The name of the kernel at `code`, as kernel_budgets.py writes it: "functor_kernel<StackKernel>", without
/// namespaces, return type and parameters. Throws std::runtime_error if the program has no symbol there.
std::string name_of_kernel(const void* code);

}  // namespace sweep::cuda::host
