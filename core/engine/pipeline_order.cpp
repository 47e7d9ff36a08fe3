#include "core/engine/pipeline_order.h"

#include <algorithm>
#include <optional>

namespace sweep {
namespace {

// Plays the pipeline with tasks that all take one tick.
class Play {
 public:
  Play(std::span<const std::size_t> devices, std::size_t parts, PipelineSchedule schedule,
       PipelinePasses passes)
      : devices_(devices),
        parts_(parts),
        eager_(schedule == PipelineSchedule::kOneForwardOneBackward && passes == PipelinePasses::kBoth),
        forward_(devices.size(), passes == PipelinePasses::kBackward ? parts : 0),
        backward_(devices.size(), passes == PipelinePasses::kForward ? parts : 0) {
    order_.resize(devices.empty() ? 0 : *std::max_element(devices.begin(), devices.end()) + 1);
  }

  std::vector<std::vector<StageTask>> run() {
    for (bool is_done = false; !is_done;) {
      const std::vector<std::size_t> forward = forward_, backward = backward_;
      is_done = true;
      for (std::size_t device = 0; device < order_.size(); ++device) {
        if (const auto task = next_task(device, forward, backward)) {
          ++(task->backward ? backward_ : forward_)[task->stage];
          order_[device].push_back(*task);
          is_done = false;
        }
      }
    }
    return std::move(order_);
  }

 private:
  // What the device can do after the tasks of earlier ticks; the stage that is furthest comes first.
  std::optional<StageTask> next_task(std::size_t device, const std::vector<std::size_t>& forward,
                                     const std::vector<std::size_t>& backward) const {
    const std::size_t last = devices_.size() - 1;
    for (std::size_t stage = 0; stage <= last; ++stage) {
      const std::size_t part = backward[stage];
      if (devices_[stage] != device || part == parts_) continue;
      const bool is_ready = stage == last ? forward[stage] > part : backward[stage + 1] > part;
      if (is_ready && (eager_ || forward[stage] == parts_)) return StageTask{stage, part, true};
    }
    for (std::size_t stage = devices_.size(); stage-- > 0;) {
      const std::size_t part = forward[stage];
      if (devices_[stage] != device || part == parts_) continue;
      const bool is_ready = stage == 0 || forward[stage - 1] > part;
      const bool has_room = !eager_ || part - backward[stage] < devices_.size() - stage;
      if (is_ready && has_room) return StageTask{stage, part, false};
    }
    return std::nullopt;
  }

  std::span<const std::size_t> devices_;
  std::size_t parts_;
  bool eager_;                                   // backward as soon as possible
  std::vector<std::size_t> forward_, backward_;  // parts that each stage has done
  std::vector<std::vector<StageTask>> order_;
};

}  // namespace

std::vector<std::vector<StageTask>> pipeline_order(std::span<const std::size_t> devices, std::size_t parts,
                                                   PipelineSchedule schedule, PipelinePasses passes) {
  return Play(devices, parts, schedule, passes).run();
}

}  // namespace sweep
