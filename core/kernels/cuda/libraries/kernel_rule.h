// Which layers NVIDIA's libraries do, and which the built-in kernels.
//
// Both compute the same numbers except for rounding, so the answer changes the bits of a training. It is a
// rule of shapes: nothing is measured, and the same network has the same kernels on every GPU of a model with
// the same libraries. A library never gets what built-in kernels fuse with neighbouring layers (ConvPoolOp,
// LinearStackOp), unless SWEEP_CUDA_KERNELS=library asks for that.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/kernels/cuda/libraries/library.h"

namespace sweep::cuda {

/// A direction of a layer with fewer multiplications takes a few microseconds, about as long as the launch of
/// any kernel: a built-in kernel does it.
inline constexpr std::int64_t kMinLibraryProducts = 1 << 24;

std::int64_t products(const LinearShape& shape, const LibraryTask& task);
std::int64_t products(const ConvShape& shape, const LibraryTask& task);

/// The rule: whether the library is faster than the built-in kernel, as measured on an H100. It is wherever
/// there are enough multiplications, except for convolutions with few weights per channel of their result:
/// cuDNN then takes many times as long.
bool library_is_faster(const LinearShape& shape, const LibraryTask& task);
bool library_is_faster(const ConvShape& shape, const LibraryTask& task);

enum class KernelPolicy {
  kByShape,  // the rule
  kBuiltin,  // built-in kernels everywhere
  kLibrary,  // libraries wherever they have an algorithm
};

/// The policy in SWEEP_CUDA_KERNELS: "" or unset for kByShape, "builtin", or "library". Throws ConfigError
/// for any other text.
KernelPolicy policy_from_environment();

/// The libraries that a network's layers use, with versions, and what else of them the bits depend on: "for
/// every layer" under kLibrary, kInAnyOrder. Empty: built-in kernels do everything.
using UsedLibraries = std::set<std::string>;

/// Engine::kernels() of a network on CUDA device `device`: "builtin", or the libraries and the device's
/// model.
std::string kernels_text(const UsedLibraries& libraries, int device);

/// Forgets which libraries are open, so that they are opened again. For tests, which install other stand-ins.
void forget_shared_libraries();

/// A library, and the directions of a layer that it does: none if it is nullptr.
template <class Shape>
struct LibraryChoice {
  std::shared_ptr<const LayerLibrary<Shape>> library = nullptr;
  std::vector<LibraryTask> tasks = {};
};

/// For one network on one device. Not thread-safe.
class KernelRule {
 public:
  /// `deterministic`: EngineOptions::deterministic.
  KernelRule(int device, bool deterministic, KernelPolicy policy = policy_from_environment())
      : device_(device), deterministic_(deterministic), policy_(policy) {}

  /// Returns those of `tasks` that the library is to do, with LibraryTask::deterministic as its algorithm is.
  /// Opens the library if the rule says so. Shape: LinearShape or ConvShape. Throws DeviceError.
  template <class Shape>
  LibraryChoice<Shape> choose(const Shape& shape, const std::vector<LibraryTask>& tasks);

  /// Whether built-in kernels may fuse layers that libraries could do one by one.
  bool may_fuse() const { return policy_ != KernelPolicy::kLibrary; }

  /// By the layers so far.
  const UsedLibraries& used() const { return used_; }

 private:
  int device_;
  bool deterministic_;
  KernelPolicy policy_;
  UsedLibraries used_;
};

}  // namespace sweep::cuda
