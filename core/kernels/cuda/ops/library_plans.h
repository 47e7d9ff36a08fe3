// The plans that a library has for one layer: one per direction and batch size.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/libraries/library.h"
#include "core/kernels/cuda/ops/op.h"

namespace sweep::cuda {

/// Shape: LinearShape, ConvShape, BatchNormShape or PoolLayer. Not thread-safe.
template <class Shape>
class LibraryPlans {
 public:
  using Library = LayerLibrary<Shape>;

  /// `tasks`: the directions that the autotuner gave to `library`, for batches of schedule.images. Asks
  /// `plan` for the workspaces: one that lives only while forward runs and one only while backward runs, each
  /// as large as the hungriest task of its phase, so that the workspaces of all layers overlap.
  LibraryPlans(std::shared_ptr<const Library> library, const Shape& shape, std::vector<LibraryTask> tasks,
               const OpSchedule& schedule, MemoryPlan& plan)
      : library_(std::move(library)), shape_(shape), tasks_(std::move(tasks)) {
    prepare(schedule.images);
    for (const auto& [key, task_plan] : plans_) {
      std::size_t& bytes = is_forward(key.direction) ? forward_bytes_ : backward_bytes_;
      bytes = std::max(bytes, task_plan->workspace_bytes());
    }
    if (forward_bytes_ > 0) forward_ = plan.add(forward_bytes_, schedule.forward, schedule.forward);
    if (backward_bytes_ > 0) backward_ = plan.add(backward_bytes_, schedule.backward, schedule.backward);
  }

  /// Whether the autotuner gave `direction` to the library.
  bool has(Direction direction) const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const LibraryTask& task) { return task.direction == direction; });
  }

  /// Whether run() will do `direction` for batches of `images`. prepare(images) has to come before.
  bool can_run(Direction direction, int images) const { return plans_.contains({direction, images}); }

  /// Makes the plans for batches of `images`. Has to come before run(), outside of a capture. The memory plan
  /// is solved by the time smaller batches come, so their plans have to make do with the workspace of the
  /// full batch.
  void prepare(int images) {
    for (LibraryTask task : tasks_) {
      const Key key{task.direction, images};
      if (plans_.contains(key)) continue;
      const std::size_t limit = task.images == images ? kMaxWorkspace : workspace_bytes(task.direction);
      task.images = images;
      auto plan = library_->plan(shape_, task, limit);
      if (plan != nullptr) plans_.emplace(key, std::move(plan));
    }
  }

  /// Puts the library's work on the stream and returns true; or does nothing and returns false, and the
  /// caller uses the built-in kernel: the autotuner kept the direction, or the library has no algorithm for
  /// so few images that fits the workspace. The answer is the same for every pass with as many images.
  bool run(const Pass& pass, Direction direction, LibraryArrays arrays) const {
    const auto found = plans_.find({direction, pass.images});
    if (found == plans_.end()) return false;
    arrays.workspace = pass.data<std::byte>(is_forward(direction) ? forward_ : backward_);
    found->second->run(pass.stream, arrays);
    return true;
  }

 private:
  struct Key {
    Direction direction;
    int images;
    auto operator<=>(const Key&) const = default;
  };

  static bool is_forward(Direction direction) {
    return direction == Direction::kForward || direction == Direction::kInference;
  }

  std::size_t workspace_bytes(Direction direction) const {
    return is_forward(direction) ? forward_bytes_ : backward_bytes_;
  }

  std::shared_ptr<const Library> library_;
  Shape shape_;
  std::vector<LibraryTask> tasks_;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans_;
  Slot forward_, backward_;
  std::size_t forward_bytes_ = 0, backward_bytes_ = 0;
};

/// The plans for `tasks`, which KernelAutotuner::choose() or choose_all_or_none() returned.
template <class Shape>
LibraryPlans<Shape> make_library_plans(KernelAutotuner& autotuner, const Shape& shape,
                                       std::vector<LibraryTask> tasks, const OpSchedule& schedule,
                                       MemoryPlan& plan) {
  const auto library = tasks.empty() ? nullptr : autotuner.library(shape);
  return LibraryPlans<Shape>(library, shape, std::move(tasks), schedule, plan);
}

}  // namespace sweep::cuda
