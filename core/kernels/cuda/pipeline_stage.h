// Layers in a row of a network whose layers are on several CUDA devices: one stage, on its device.
//
// A stage has a program of its own, and a stream. What it needs of other stages, activations and their
// gradients, it copies itself, on its stream, from their memory to its own. Events order the streams: a copy
// waits for the segment that computes what is copied, and a stage's next batch for all copies from it.
//
// A batch may come in parts. Then arrays hold the whole batch, a part is a range of their rows, and weight
// gradients are computed once for all parts, when the last one has gone back. So the number of parts changes
// no sum, and no bit, unless NVIDIA's libraries choose other algorithms for fewer samples.
#pragma once

#include <set>
#include <vector>

#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/stage_schedule.h"

namespace sweep::cuda {

/// How a batch is cut.
class BatchParts {
 public:
  /// Up to `most` parts of `images` samples, of which each but the last is a multiple of `unit`.
  BatchParts(std::size_t images, std::size_t most, std::size_t unit);
  std::size_t count() const { return count_; }
  int images() const { return images_; }
  /// The first sample of a part, or images() for part count().
  int begin(std::size_t part) const;

 private:
  int images_;
  std::size_t unit_, units_, count_;
};

/// Every function makes the stage's device the thread's current one. Not thread-safe.
class PipelineStage {
 public:
  /// As DeviceRunner's.
  PipelineStage(const Network& network, const ProgramOptions& program, std::size_t batch_size,
                Placement placement, FedArrays fed);

  DeviceRunner& runner() { return runner_; }
  Program& program() { return runner_.program(); }
  int device() const { return device_; }
  /// Of each op, whether a training pass over several parts needs all of them at once; the loss is an op.
  std::vector<bool> whole_batch_ops() const;

  /// Connects this stage with a later one if both have copies of a value, and none between them has.
  static void link(std::vector<std::unique_ptr<PipelineStage>>& stages);
  /// Stages whose optimizers clip the gradient of all together exchange squares, too.
  static void join_optimizers(std::vector<std::unique_ptr<PipelineStage>>& stages);

  /// Brings the batch to the device and waits, on the stream, until others have copied what they need of the
  /// last one.
  void begin(Task task, const Batch& batch, const StepInput& input, const BatchParts& parts);
  /// Puts a task of segment `number` on the stream. `schedule` is the same for all stages of a batch.
  void run(const StageSchedule& schedule, const SegmentTask& task);
  /// The weight gradients, where parts have left them to the end, and the squares for the clipping.
  void finish_gradients();
  void take_step();

 private:
  // A value that this stage and another one have.
  struct Link {
    PipelineStage* other;
    SharedValue here, there;
  };
  struct Rows {
    int begin, end;
  };
  // When a segment is done with each part.
  struct Marks {
    std::vector<Event> forward, backward;
  };

  bool is_last() const { return program_options_.stage.index + 1 == program_options_.stage.count(); }
  Rows rows_of(const Segment& segment, std::size_t part) const;
  Pass pass_of(const Rows& rows, bool training);
  void copy_values(const StageSchedule& schedule, const SegmentTask& task);
  void copy(const Link& link, const Rows& rows, bool gradient);
  const Event& mark(const StageSchedule& schedule, std::size_t op, const SegmentTask& of, bool whole);
  Event& mark(std::size_t segment, std::size_t part, bool backward);
  void forward(const Segment& segment, std::size_t part);
  void backward(const Segment& segment, std::size_t part);
  void finish_forward(std::size_t part, const Pass& pass);

  const ProgramOptions program_options_;
  const int device_;
  DeviceRunner runner_;
  Array<DeviceTotals> unused_totals_;  // of passes over parts; the whole batch is counted at once
  std::vector<Link> values_, gradients_;
  std::vector<PipelineStage*> readers_;  // that copy from this stage
  std::vector<PipelineStage*> clipped_;  // the other stages, if gradients are clipped
  std::vector<Marks> marks_;             // by segment
  Event copied_;                         // the last copy from another stage
  Event squares_;                        // of this stage's gradients are there
  std::set<int> prepared_;               // numbers of samples that ops are prepared for
  // The batch.
  Task task_ = Task::kTrain;
  BatchParts parts_{0, 1, 1};
  StepInputs inputs_{};
};

}  // namespace sweep::cuda
