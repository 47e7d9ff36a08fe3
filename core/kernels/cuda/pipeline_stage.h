// Layers in a row of a network whose layers are on several CUDA devices: one stage, on its device.
//
// A stage has a program of its own, and a stream. What it needs of other stages, activations and their
// gradients, it copies itself, on its stream, from their memory to its own. Events order the streams: a copy
// waits for the segment that computes what is copied, and a stage's next round for all copies from it.
//
// A share of a batch may come in micro-batches. Then arrays hold the whole share, a micro-batch is a range of
// their rows, and weight gradients are computed once for all micro-batches, when the last one has gone back.
// So the number of micro-batches changes no sum, and no bit, unless NVIDIA's libraries choose other
// algorithms for fewer samples.
//
// Where other sets of devices compute other shares of the batch, the stage exchanges gradients, and before
// them the sums that batch normalization needs, with the same stage of the others.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/stage_round.h"
#include "core/kernels/cuda/stage_schedule.h"

namespace sweep::cuda {

/// Every function makes the stage's device the thread's current one. Not thread-safe.
class PipelineStage {
 public:
  /// As DeviceRunner's.
  PipelineStage(const Network& network, const ProgramOptions& program, std::size_t fed_samples,
                Placement placement, FedArrays fed);

  DeviceRunner& runner() { return runner_; }
  Program& program() { return runner_.program(); }
  /// Whether, for each op, a training pass over several micro-batches needs all of them at once; the loss is
  /// an op.
  std::vector<bool> whole_batch_ops() const;

  /// Connects this stage with a later one if both have copies of a value, and none between them has.
  static void link(std::vector<std::unique_ptr<PipelineStage>>& stages);
  /// Stages whose optimizers clip the gradient of all together also exchange squares.
  static void join_optimizers(std::vector<std::unique_ptr<PipelineStage>>& stages);
  /// Connects this stage with that of the other sets of devices. `devices`: the stage's device and theirs,
  /// which it outlives; other stages on the device may have the same. Set r computes shares [first_shares[r],
  /// first_shares[r + 1]).
  void join(DeviceGroup& devices, std::vector<int> first_shares);

  /// Prepares the ops for the passes of a round: may allocate, and load kernels.
  void prepare(const StageRound& round);
  /// Brings samples to the device, for the rounds until the next feed().
  void feed(const Batch& batch, const StepInput& input);
  /// Begins a round, which outlives it: waits, on the stream, until others have copied what they need of the
  /// last one. `waits`: the host waits for every exchange, see NetworkInStages::train().
  void begin(Task task, const StageRound& round, bool waits);
  /// Puts a task of the round on the stream. `schedule` is the same for all stages.
  void run(const StageSchedule& schedule, const SegmentTask& task);
  /// The weight gradients, where micro-batches have left them to the end, and the sum of each share's.
  void finish_round();

  /// Behind all rounds of a batch, all stages one after another.
  void exchange_gradients();
  /// For the clipping.
  void sum_squares();
  void take_step();

  /// Returns when the stream's work is done; throws as DeviceGroup::wait().
  void wait();
  /// How long the stream has waited for other sets of devices since the last call, by the device's clock; 0
  /// the first time. After wait().
  double take_exchange_seconds() { return exchanges_.take(); }

 private:
  // A value that this stage and another one have.
  struct Link {
    PipelineStage* other;
    SharedValue here, there;
  };
  using MicroBatch = StageRound::MicroBatch;
  // When a segment is done with each micro-batch.
  struct Marks {
    std::vector<Event> forward, backward;
  };

  bool is_last() const { return program_options_.stage.index + 1 == program_options_.stage.count(); }
  void choose_micro_batches(const Segment& segment, std::size_t micro_batch);
  Pass pass_of(const MicroBatch& micro_batch, bool training);
  Pass whole_pass(std::size_t share, bool training);
  void copy_values(const StageSchedule& schedule, const SegmentTask& task);
  void copy(const Link& link, const MicroBatch& micro_batch, bool gradient);
  void join_sums(const Segment& segment, Phase phase);
  const Event& mark(const StageSchedule& schedule, std::size_t op, const SegmentTask& of, bool whole);
  Event& mark(std::size_t segment, std::size_t micro_batch, bool backward);
  void forward(const Segment& segment, const MicroBatch& micro_batch);
  void backward(const Segment& segment, const MicroBatch& micro_batch);
  void finish_forward(const MicroBatch& micro_batch, const Pass& pass);
  void exchange(std::byte* shares, std::size_t bytes);

  const ProgramOptions program_options_;
  const int device_;
  DeviceRunner runner_;
  Array<Totals> unused_totals_;  // of passes over micro-batches; the whole share is counted at once
  std::vector<Link> values_, gradients_;
  std::vector<PipelineStage*> readers_;  // that copy from this stage
  std::vector<PipelineStage*> clipped_;  // the other stages, if gradients are clipped
  std::vector<Marks> marks_;             // by segment
  Event copied_;                         // the last copy from another stage
  Event squares_;                        // of this stage's gradients are there
  std::set<int> prepared_;               // numbers of samples that ops are prepared for
  DeviceGroup* group_ = nullptr;         // nullptr: no other set of devices has shares
  std::vector<int> first_shares_;
  std::vector<std::size_t> begins_;  // of exchange(), kept so that a step allocates nothing
  DeviceClock exchanges_;
  StepInputs inputs_{};
  // The round.
  Task task_ = Task::kTrain;
  const StageRound* round_ = nullptr;
  JointPass joint_ = {};
  bool waits_ = false;
  std::vector<MicroBatch> micro_batches_;  // of the task at hand
};

}  // namespace sweep::cuda
