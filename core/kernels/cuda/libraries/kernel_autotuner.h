// Which kernels do a layer's work: this engine's own, or a library's.
//
// Both give the same numbers but for rounding, so the choice changes the bits of a training, and must not
// change while one goes on. Hence:
//  - A choice is measured once for each device, library version, shape and batch size, when a network is
//    compiled, and kept for all later runs of this machine's user (see choice_cache.h). What was measured
//    beside other work may be the slower kernel; it stays nevertheless.
//  - Nothing is measured below kMinProducts: such layers take some microseconds, which is what starting any
//    kernel takes, and own kernels have them. Nor does a library get what own kernels do together with their
//    neighbours (see ConvPoolOp), nor work of which it gives other numbers than own kernels.
//  - Where measurements cannot be made (the stand-in, too little memory) or kept (no directory for caches),
//    libraries have everything from kMinProducts on.
//  - Kernels that give other bits each time are asked for only if the options say so. They are another task
//    to measure, and record() says if there are any.
//  - record() says what was chosen. Checkpoints keep it, and a resumed run passes it back (EngineOptions::
//    kernels): then nothing is measured, and the same kernels go on. If they cannot, because the device or a
//    library is another now, the new record() differs, and the run is trained from the start.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/kernels/cuda/libraries/choice_cache.h"
#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/runtime/kernel_timer.h"

namespace sweep::cuda {

/// Multiplications, or what takes as long, below which own kernels have a work without being measured.
inline constexpr std::int64_t kMinProducts = 1 << 24;

enum class KernelPolicy {
  kMeasured,  // as above
  kBuiltin,   // own kernels everywhere
  kLibrary,   // libraries wherever they have something
};

/// What the variable SWEEP_CUDA_KERNELS says: "measured" (also if it is empty or not set), "own" or
/// "library". Throws ConfigError for any other text.
KernelPolicy policy_from_environment();

struct AutotunerOptions {
  int device = 0;
  std::string recorded = {};  // record() of an earlier engine, which then decides; "": the policy does
  bool deterministic = true;  // EngineOptions::deterministic
  KernelPolicy policy = policy_from_environment();
  std::filesystem::path choices = default_choice_file();
  KernelTimer timer = kernel_timer();  // empty: nothing is measured
};

/// Of one network.
class KernelAutotuner {
 public:
  explicit KernelAutotuner(AutotunerOptions options) : options_(std::move(options)) {}

  /// Those of `tasks`, the works of layer `layer`, that are the library's, with LibraryTask::deterministic
  /// where the library's algorithm is. Shape: LinearShape, ConvShape, BatchNormShape or PoolLayer. Throws
  /// DeviceError.
  template <class Shape>
  std::vector<LibraryTask> choose(const std::string& layer, const Shape& shape,
                                  const std::vector<LibraryTask>& tasks);

  /// The same for works that leave each other what only their own kernels understand: all of them or none.
  template <class Shape>
  std::vector<LibraryTask> choose_all_or_none(const std::string& layer, const Shape& shape,
                                              const std::vector<LibraryTask>& tasks);

  /// Whether own kernels may do a layer's work together with its neighbours' (see LinearStackOp), instead of
  /// asking choose() for it.
  bool may_fuse(const std::string& layer) const;

  /// To be asked for only where choose() found something.
  template <class Shape>
  const std::shared_ptr<const LayerLibrary<Shape>>& library(const Shape& shape) {
    return libraries().of(shape);
  }

  /// Everything chosen so far that bits depend on: "own", or JSON with the device, the libraries' versions
  /// and the works of each layer that are theirs; with "same_bits": false if one of them gives others each
  /// time. Never empty.
  std::string record() const;

 private:
  template <class Shape>
  std::optional<LibraryTask> chosen(const std::string& layer, const Shape& shape, LibraryTask task);
  void note(const std::string& layer, const LibraryTask& task, const std::string& library);
  template <class Shape>
  bool is_for_library(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan,
                      const std::string& library);
  bool is_recorded(const std::string& layer, Direction direction) const;
  const Libraries& libraries();
  const std::string& device_name();

  AutotunerOptions options_;
  std::optional<Libraries> libraries_;  // opened when first needed
  std::string device_name_;
  bool same_bits_ = true;
  std::set<std::string> used_;                              // names of libraries
  std::map<std::string, std::vector<std::string>> layers_;  // works of layers that are libraries'
};

}  // namespace sweep::cuda
