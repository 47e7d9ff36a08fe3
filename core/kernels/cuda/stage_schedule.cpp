#include "core/kernels/cuda/stage_schedule.h"

#include <algorithm>

#include "core/engine/stages.h"

namespace sweep::cuda {
namespace {

// The tasks of one phase, whose segments begin with number `first`, one device's after another's as soon as
// those that they need are there.
void append_tasks(std::vector<SegmentTask>& tasks, std::size_t first, std::span<const std::size_t> devices,
                  std::size_t micro_batches, PipelineSchedule schedule, PipelinePasses passes) {
  if (devices.empty()) return;
  const std::vector<std::vector<StageTask>> order = pipeline_order(devices, micro_batches, schedule, passes);
  const bool only_back = passes == PipelinePasses::kBackward;
  std::vector<std::size_t> forward(devices.size(), only_back ? micro_batches : 0), backward(devices.size()),
      next(order.size());
  const auto is_ready = [&](const StageTask& task) {
    if (!task.backward) return task.stage == 0 || forward[task.stage - 1] > task.part;
    return (task.stage + 1 == devices.size() ? forward[task.stage] : backward[task.stage + 1]) > task.part;
  };
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (std::size_t device = 0; device < order.size(); ++device) {
      if (next[device] == order[device].size() || !is_ready(order[device][next[device]])) continue;
      const StageTask& task = order[device][next[device]++];
      ++(task.backward ? backward : forward)[task.stage];
      tasks.push_back({first + task.stage, task.part, task.backward});
      is_done = false;
    }
  }
}

}  // namespace

StageSchedule::StageSchedule(std::span<const std::vector<bool>> whole_batch, std::vector<std::size_t> devices)
    : devices_(std::move(devices)), phases_{{0, 0}} {
  for (std::size_t stage = 0; stage < whole_batch.size(); ++stage) {
    for (std::size_t op = 0; op < whole_batch[stage].size(); ++op) {
      const bool whole = whole_batch[stage][op];
      if (whole) phases_.push_back({segments_.size(), 0});
      const bool goes_on = !whole && segments_.size() > phases_.back().begin &&
                           segments_.back().stage == stage && !segments_.back().whole_batch;
      if (!goes_on) segments_.push_back({stage, op, op, whole});
      segments_.back().end = op + 1;
      phases_.back().end = segments_.size();
    }
  }
}

std::size_t StageSchedule::segment_of(std::size_t stage, std::size_t op) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.stage == stage && segment.begin <= op && op < segment.end;
  });
  return static_cast<std::size_t>(found - segments_.begin());
}

std::vector<SegmentTask> StageSchedule::tasks(std::size_t micro_batches, PipelineSchedule schedule,
                                              bool training) const {
  std::vector<SegmentTask> tasks;
  const auto leads = [&](const Phase& phase) {
    return phase.begin < phase.end && segments_[phase.begin].whole_batch;
  };
  const auto append_phase = [&](const Phase& phase, PipelinePasses passes) {
    const std::size_t first = phase.begin + (leads(phase) ? 1 : 0);
    std::vector<std::size_t> devices;
    for (std::size_t s = first; s < phase.end; ++s) devices.push_back(devices_[segments_[s].stage]);
    append_tasks(tasks, first, devices, micro_batches, schedule, passes);
  };
  for (const Phase& phase : phases_) {
    if (leads(phase)) tasks.push_back({phase.begin, 0, false});
    const bool is_last = &phase == &phases_.back();
    append_phase(phase, is_last && training ? PipelinePasses::kBoth : PipelinePasses::kForward);
  }
  if (!training) return tasks;
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    if (phase != phases_.rbegin()) append_phase(*phase, PipelinePasses::kBackward);
    if (leads(*phase)) tasks.push_back({phase->begin, 0, true});
  }
  return tasks;
}

}  // namespace sweep::cuda
