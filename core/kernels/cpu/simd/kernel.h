// Functions that are compiled once per instruction set, and which of these the CPU kernels use here.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace sweep {

/// Highway's name of the target chosen at run time: "AVX3" (AVX-512), "AVX2", "SSE2",
/// "NEON", … Thread-safe, as the others.
std::string simd_target_name();

/// Its place in the tables of kernels. Not inline: Highway counts the targets that a source is compiled for.
std::size_t simd_target_index();

/// Highway's version: "1.0.3".
std::string simd_library_version();

}  // namespace sweep

namespace sweep::cpu {

template <class Function>
class Kernel;

/// Calls the version for the best instruction set that the processor has. Constant, and ready before any
/// constructor runs. Calls are as thread-safe as the function.
template <class Result, class... Args>
class Kernel<Result(Args...)> {
 public:
  using Version = Result (*)(Args...);

  /// `versions`: Highway's table, one version per target. A table of one has the only target.
  template <std::size_t kVersions>
  explicit constexpr Kernel(const Version (&versions)[kVersions])
      : versions_(versions), is_single_(kVersions == 1) {}

  Result operator()(Args... args) const {
    return versions_[is_single_ ? 0 : simd_target_index()](std::forward<Args>(args)...);
  }

 private:
  const Version* versions_;
  bool is_single_;
};

}  // namespace sweep::cpu

/// Defines the kernel `name`, which a header declares and the target's namespace implements; after #if
/// HWY_ONCE.
#define SWEEP_EXPORT_KERNEL(name) \
  HWY_EXPORT(name);               \
  constinit const decltype(name) name(HWY_DISPATCH_TABLE(name))
