// The plans that a library has for one layer: one per direction and batch size.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/ops/op.h"

namespace sweep::cuda {

/// Shape: LinearShape or ConvShape. Not thread-safe.
template <class Shape>
class LibraryPlans {
 public:
  /// `choice`: for batches of schedule.images. Asks `plan` for the workspaces: one that lives only while
  /// forward runs and one only while backward runs, each as large as the hungriest task of its phase, so that
  /// the workspaces of all layers overlap.
  LibraryPlans(LibraryChoice<Shape> choice, const Shape& shape, const OpSchedule& schedule, MemoryPlan& plan)
      : library_(std::move(choice.library)), shape_(shape), tasks_(std::move(choice.tasks)) {
    make_plans(schedule.images);
    for (const auto& [key, task_plan] : plans_) {
      std::size_t& bytes = is_forward(key.direction) ? forward_bytes_ : backward_bytes_;
      bytes = std::max(bytes, task_plan->workspace_bytes());
    }
    if (forward_bytes_ > 0) forward_ = plan.add(forward_bytes_, schedule.forward, schedule.forward);
    if (backward_bytes_ > 0) backward_ = plan.add(backward_bytes_, schedule.backward, schedule.backward);
  }

  /// Whether the library is to do `direction`.
  bool has(Direction direction) const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const LibraryTask& task) { return task.direction == direction; });
  }

  /// Makes the plans for batches of `images` and returns true, if they have not been prepared. Has to come
  /// before run(), outside of a capture. The caller then runs each plan once: a library may load kernels or
  /// allocate in a first run, which a capture forbids.
  bool prepare(int images) {
    if (tasks_.empty() || !prepared_.insert(images).second) return false;
    make_plans(images);
    return true;
  }

  /// Puts the library's work on the stream and returns true; or does nothing and returns false, and the
  /// caller uses the built-in kernel: the library does not do the direction, or has no algorithm for so few
  /// images that fits the workspace. The answer is the same for every pass with as many images.
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

  static bool is_forward(Direction direction) { return direction == Direction::kForward; }

  // The memory plan is solved by the time smaller batches come, so their plans have to make do with the
  // workspace of the full batch.
  void make_plans(int images) {
    for (LibraryTask task : tasks_) {
      const Key key{task.direction, images};
      if (plans_.contains(key)) continue;
      const std::size_t fixed = is_forward(task.direction) ? forward_bytes_ : backward_bytes_;
      const std::size_t limit = task.images == images ? kMaxWorkspace : fixed;
      task.images = images;
      auto plan = library_->plan(shape_, task, limit);
      if (plan != nullptr) plans_.emplace(key, std::move(plan));
    }
  }

  std::shared_ptr<const LayerLibrary<Shape>> library_;
  Shape shape_;
  std::vector<LibraryTask> tasks_;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans_;
  std::set<int> prepared_;
  Slot forward_, backward_;
  std::size_t forward_bytes_ = 0, backward_bytes_ = 0;
};

}  // namespace sweep::cuda
