// What a library does of one layer: a plan per task, for every size of batch that comes.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernels/cuda/libraries/kernel_chooser.h"
#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/ops/op.h"

namespace sweep::cuda {

template <class Shape>
class LibraryShare {
 public:
  using Library = LayerLibrary<Shape>;

  /// `tasks` for batches of times.images, each of which `library` has a plan for.
  LibraryShare(std::shared_ptr<const Library> library, const Shape& shape, std::vector<LibraryTask> tasks,
               const OpTimes& times, MemoryPlan& plan)
      : library_(std::move(library)), shape_(shape), tasks_(std::move(tasks)) {
    prepare(times.images);
    std::size_t forward = 0, backward = 0;
    for (const auto& [key, task_plan] : plans_) {
      std::size_t& most = is_forward(key.work) ? forward : backward;
      most = std::max(most, task_plan->workspace_bytes());
    }
    if (forward > 0) forward_ = plan.add(forward, times.forward, times.forward);
    if (backward > 0) backward_ = plan.add(backward, times.backward, times.backward);
    forward_bytes_ = forward;
    backward_bytes_ = backward;
  }

  bool has(Work work) const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const LibraryTask& task) { return task.work == work; });
  }

  /// Whether run() does `work` of batches of `images`, for which prepare() was called.
  bool does(Work work, int images) const { return plans_.contains({work, images}); }

  /// Makes the plans for batches of `images`. Has to come before run(), outside of a recording.
  void prepare(int images) {
    for (LibraryTask task : tasks_) {
      const Key key{task.work, images};
      if (plans_.contains(key)) continue;
      const std::size_t limit = task.images == images ? kMostWorkspace : workspace_bytes(task.work);
      task.images = images;
      auto plan = library_->plan(shape_, task, limit);
      if (plan != nullptr) plans_.emplace(key, std::move(plan));
    }
  }

  /// Does the work, or nothing: then it is for own kernels, because it is none of this share's tasks, or
  /// because the library has nothing for so few images that is content with the workspace. The same every
  /// time.
  bool run(const Pass& pass, Work work, LibraryArrays arrays) const {
    const auto found = plans_.find({work, pass.images});
    if (found == plans_.end()) return false;
    arrays.workspace = pass.at<std::byte>(is_forward(work) ? forward_ : backward_);
    found->second->run(pass.stream, arrays);
    return true;
  }

 private:
  struct Key {
    Work work;
    int images;
    auto operator<=>(const Key&) const = default;
  };

  static bool is_forward(Work work) { return work == Work::kForward || work == Work::kEvaluate; }

  std::size_t workspace_bytes(Work work) const { return is_forward(work) ? forward_bytes_ : backward_bytes_; }

  std::shared_ptr<const Library> library_;
  Shape shape_;
  std::vector<LibraryTask> tasks_;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans_;
  Slot forward_, backward_;
  std::size_t forward_bytes_ = 0, backward_bytes_ = 0;
};

/// The share of `chosen`, what KernelChooser::choose() or choose_all() returned.
template <class Shape>
LibraryShare<Shape> share_of(KernelChooser& chooser, const Shape& shape, std::vector<LibraryTask> chosen,
                             const OpTimes& times, MemoryPlan& plan) {
  const auto library = chosen.empty() ? nullptr : chooser.library(shape);
  return LibraryShare<Shape>(library, shape, std::move(chosen), times, plan);
}

}  // namespace sweep::cuda
