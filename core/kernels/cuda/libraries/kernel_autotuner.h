// Decides for each layer and direction whether a built-in kernel or one of NVIDIA's libraries does the work.
//
// Both compute the same numbers but for rounding, so the decision changes the bits of a training and must not
// change while one goes on. Hence:
//  - A decision is measured once per device, library version, shape and batch size, when a network is
//  compiled,
//    and kept for all later runs of this user on this machine (see choice_cache.h). A measurement that other
//    work on the GPU has disturbed may pick the slower kernel; that decision stays all the same.
//  - Below kMinProducts nothing is measured: such work takes a few microseconds, about as long as launching
//  any
//    kernel, and the built-in kernels do it. A library also never gets what built-in kernels fuse with
//    neighbouring layers (ConvPoolOp, LinearStackOp), nor work whose results differ by more than rounding.
//  - Where measuring is impossible (the stand-in, too little memory) or cannot be kept (no cache directory),
//    libraries do everything from kMinProducts on.
//  - Nondeterministic algorithms are considered only if the options allow them. They are tasks of their own
//  to
//    measure, and record() tells if one was chosen.
//  - record() lists the decisions. Checkpoints store it and a resumed run passes it back
//  (EngineOptions::kernels):
//    then nothing is measured and the same kernels go on. If they cannot, because device or library has
//    changed, the new record() differs and the run is trained from the start.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/kernels/cuda/libraries/choice_cache.h"
#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/libraries/library_cache.h"
#include "core/kernels/cuda/runtime/kernel_timer.h"

namespace sweep::cuda {

/// Multiplications, or memory traffic that takes as long, below which a built-in kernel does the work
/// unmeasured.
inline constexpr std::int64_t kMinProducts = 1 << 24;

enum class KernelPolicy {
  kMeasured,  // the faster one, as above
  kBuiltin,   // built-in kernels everywhere
  kLibrary,   // libraries wherever they have an algorithm
};

/// The policy in SWEEP_CUDA_KERNELS: "measured" (also if empty or unset), "own" for kBuiltin, or "library".
/// Throws ConfigError for any other text.
KernelPolicy policy_from_environment();

struct AutotunerOptions {
  int device = 0;
  std::string recorded = {};  // record() of an earlier engine, which overrides the policy; "": none
  bool deterministic = true;  // EngineOptions::deterministic
  KernelPolicy policy = policy_from_environment();
  std::filesystem::path choices = default_choice_file();
  KernelTimer timer = kernel_timer();  // empty: nothing is measured
};

/// The decisions for one network. Not thread-safe.
class KernelAutotuner {
 public:
  explicit KernelAutotuner(AutotunerOptions options);

  /// Returns those of `tasks` that the library is to do, with LibraryTask::deterministic as its algorithm is.
  /// `layer`: the layer's name, which record() uses. Shape: LinearShape, ConvShape, BatchNormShape or
  /// PoolLayer. Throws DeviceError.
  template <class Shape>
  std::vector<LibraryTask> choose(const std::string& layer, const Shape& shape,
                                  const std::vector<LibraryTask>& tasks);

  /// The same for directions that exchange data only their own kernels understand: all of `tasks` or none.
  template <class Shape>
  std::vector<LibraryTask> choose_all_or_none(const std::string& layer, const Shape& shape,
                                              const std::vector<LibraryTask>& tasks);

  /// Whether a built-in kernel may fuse `layer` with its neighbours (see LinearStackOp); otherwise choose()
  /// decides about it.
  bool may_fuse(const std::string& layer) const;

  /// The library of such layers. Not nullptr once choose() has returned a task for them.
  template <class Shape>
  const std::shared_ptr<const LayerLibrary<Shape>>& library(const Shape& shape) {
    return libraries().of(shape);
  }

  /// All decisions so far that bits depend on; never empty. "own" if built-in kernels do everything.
  /// Otherwise JSON: the device, the libraries with their versions, "layers" with the directions that
  /// libraries do; "same_bits": false if one of them is nondeterministic; and under
  /// SWEEP_CUDA_KERNELS=library "no_algorithm", the directions that fell back to built-in kernels because the
  /// library could not do them.
  std::string record() const;

  /// Whether all decisions so far were those of AutotunerOptions::recorded, which may tell of more layers.
  bool keeps_record() const { return keeps_record_; }

 private:
  enum class Decision { kBuiltin, kLibrary, kNoAlgorithm };
  // Sets task.deterministic. kNoAlgorithm: built-in, although the library was to do it.
  template <class Shape>
  Decision decide(const std::string& layer, const Shape& shape, LibraryTask& task);
  void note(const std::string& layer, const LibraryTask& task, const std::string& library);
  template <class Shape>
  bool library_is_faster(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan,
                         const std::string& library);
  // Whether the library could run the plan.
  template <class Shape>
  bool tried(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan) const;
  bool is_recorded(const char* list, const std::string& layer, Direction direction) const;
  const Libraries& libraries();
  const std::string& device_name();

  AutotunerOptions options_;
  std::map<std::string, std::set<std::string>> recorded_;  // lists of options_.recorded, by key
  std::shared_ptr<const Libraries> libraries_;             // opened when first needed
  std::string device_name_;
  bool same_bits_ = true, keeps_record_ = true;
  std::set<std::string> used_;                              // names of libraries
  std::map<std::string, std::vector<std::string>> layers_;  // directions that libraries do
  std::map<std::string, std::vector<std::string>>
      no_algorithm_;  // directions that they were to do but cannot
};

}  // namespace sweep::cuda
