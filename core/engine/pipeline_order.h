// In which order the devices of a pipeline work on the parts of a batch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/engine/parallel.h"

namespace sweep {

/// One part of a batch on its way through one stage.
struct StageTask {
  std::size_t stage = 0, part = 0;
  bool backward = false;
  friend bool operator==(const StageTask&, const StageTask&) = default;
};

enum class PipelinePasses { kForward, kBackward, kBoth };

/// What each device does, in order. `devices`: of each stage, from 0. Every stage takes the
/// parts in their order, forward and back. A device that keeps to its order, and begins a task when that of
/// the stage before (forward) or after it (backward) is done, never waits for ever. With
/// kOneForwardOneBackward, stage s of S never has more than S − s parts that went forward and not back.
std::vector<std::vector<StageTask>> pipeline_order(std::span<const std::size_t> devices, std::size_t parts,
                                                   PipelineSchedule schedule, PipelinePasses passes);

}  // namespace sweep
