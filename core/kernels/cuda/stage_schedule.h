// In which order the ops of a network's stages are put on their devices' streams.
//
// A batch is cut into the micro-batches of a StageRound, which go through the stages one after the other;
// core/engine/stages.h says when. An op that needs the whole batch at once, batch normalization, ends a
// phase: it waits for all micro-batches, and the micro-batches go on from there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/engine/parallel.h"

namespace sweep::cuda {

/// Ops in a row of one stage, which are run together.
struct Segment {
  std::size_t stage = 0;
  std::size_t begin = 0, end = 0;  // ops of the stage
  bool whole_batch = false;        // one op, for all micro-batches at once
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// A segment's work on one micro-batch of the batch; on all micro-batches, as micro-batch 0, with
/// Segment::whole_batch.
struct SegmentTask {
  std::size_t segment = 0, micro_batch = 0;
  bool backward = false;
  friend bool operator==(const SegmentTask&, const SegmentTask&) = default;
};

class StageSchedule {
 public:
  /// `whole_batch`: of each stage, whether each op needs the whole batch; the loss counts as an op.
  /// `devices`: of each stage, from 0 in order of first appearance.
  StageSchedule(std::span<const std::vector<bool>> whole_batch, std::vector<std::size_t> devices);

  const std::vector<Segment>& segments() const { return segments_; }
  /// The segment that has op `op` of `stage`.
  std::size_t segment_of(std::size_t stage, std::size_t op) const;

  /// All tasks of a batch of `micro_batches` micro-batches, forward and, if `training`, backward. Each comes
  /// after those that it needs the results of; those of one device are in the order of `schedule`. Those on
  /// the whole batch are in the same order whatever `micro_batches` and `schedule`, and there are no others
  /// without micro-batches.
  std::vector<SegmentTask> tasks(std::size_t micro_batches, PipelineSchedule schedule, bool training) const;

 private:
  // Segments [begin, end), except a leading one that needs the whole batch.
  struct Phase {
    std::size_t begin, end;
  };

  std::vector<std::size_t> devices_;
  std::vector<Segment> segments_;
  std::vector<Phase> phases_;
};

}  // namespace sweep::cuda
