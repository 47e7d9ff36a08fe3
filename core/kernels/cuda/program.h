// A network compiled for one CUDA device: its ops, its memory, and its steps as CUDA graphs.
//
// A step of a small network is a handful of kernels of a few microseconds, about what one launch costs. So
// steps are captured in graphs, several steps per graph, and launched with one call. A graph has fixed
// pointers and sizes: there is one per task, number of steps and batch size, and everything that varies from
// step to step (rows, learning rate, step number) is read from device memory, where BatchFeed copies it
// before each launch.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/augment.h"
#include "core/data/dataset.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/batch_shares.h"
#include "core/kernels/cuda/compiler.h"
#include "core/kernels/cuda/kernels/augment.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/network/loss.h"
#include "core/network/network.h"
#include "core/network/optimizer.h"

namespace sweep::cuda {

enum class Task { kTrain, kAugmentAndTrain, kEvaluate, kPredict };

struct ProgramOptions {
  int batch_size;  // largest batch that is evaluated, and largest share of one that is trained
  OptimizerOptions optimizer;
  InputTransform transform;
  LossOptions loss;
  double clip_norm;
  std::uint64_t seed;
  int device;          // index of the current device
  bool deterministic;  // EngineOptions::deterministic
  AugmentOptions augment;
  BatchShares shares = {};
  // In a stage: whether all of `shares` are under way at the same time. Else they are where batch
  // normalization lets them wait for each other.
  bool shares_together = false;
  StageLayers stage = {};  // the layers that the program has
};

/// The inputs of consecutive steps in device memory: step i has its StepInput at first + i · stride, and its
/// rows `rows_offset` bytes after that, and the samples' numbers in their set, for kAugmentAndTrain, at
/// `numbers_offset`.
struct StepInputs {
  std::byte* first;
  std::size_t stride, rows_offset, numbers_offset;
};

/// The parameters, or buffers, of a stage: [first, end) of all. Its arrays begin a little before, at `base`,
/// so that every layer's parameters are aligned as they are in the array of the whole network.
struct ArrayRange {
  std::size_t first = 0, end = 0, base = 0;
};

/// Parameters, buffers and the optimizer's arrays have the layout that Network describes; those of a stage
/// are its range of it. Not thread-safe.
class Program {
 public:
  Program(Stream& stream, const Network& network, const ProgramOptions& options);

  /// Puts `steps` steps of `images` samples on the stream, as one graph launch. The graph is captured the
  /// first time, so `inputs` has to be the same every time. In training `images` may be more than batch_size:
  /// as many as options.shares.turns make of it. Not for options.shares of several devices, whose steps
  /// NetworkInStages takes.
  void run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);

  /// Returns the graph of such a call, captured now if there is none yet, and launches nothing.
  const Graph& record(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);

  /// What a step reads, in device memory.
  struct Inputs {
    const StepInput* input = nullptr;
    const std::uint32_t* rows = nullptr;     // of this device's samples
    const std::uint32_t* numbers = nullptr;  // for kAugmentAndTrain
  };
  /// A pass over all samples of `inputs`, in the memory of this device's first share; not of training.
  Pass make_pass(Stream& stream, int images, const Inputs& inputs) const;
  /// A training pass over samples of a share, which are `samples` of the batch and all of `inputs`. `joint`
  /// outlives the pass.
  Pass training_pass(Stream& stream, const Inputs& inputs, int share, const SampleRange& samples,
                     const JointPass& joint) const;
  /// What the passes over shares of these sizes have in common.
  JointPass joint_pass(const ShareSizes& sizes) const { return {sums_.data(), memory_.data(), sizes}; }
  /// Leaves what other shares need of this one, before `op` goes on; of a share without samples, zeros.
  void leave_sums(const Op& op, Phase phase, const Pass& pass) const;
  /// Adds up the gradient of a share, in its own place, to which it is added if `add`. Without samples it is
  /// zero. Nothing if batches are trained whole.
  void sum_gradient(Stream& stream, int share, bool has_samples, bool add) const;
  /// The gradients of all shares, and bytes of each; empty if batches are trained whole.
  std::byte* share_gradients() const { return reinterpret_cast<std::byte*>(share_gradients_.data()); }
  std::size_t gradient_bytes() const { return parameters_.size() * sizeof(float); }
  Totals* totals_of_share(int share) const;
  /// The samples as floats, if an op reads them so.
  void load(const Pass& pass) const;
  /// The loss, and the stack, which is fused with it; in a training pass also the gradient of the outputs, or
  /// of all activations of the stack. `compares`: with the targets; else the outputs alone.
  void run_loss(const Pass& pass, bool compares, Totals* totals) const;
  const CompiledNetwork& network() const { return network_; }
  Optimizer& optimizer() { return optimizer_; }
  const ArrayRange& array_range(const EngineArray& which) const {
    return which.kind == EngineArray::kBuffers ? buffer_range_ : parameter_range_;
  }

  /// Makes room for the batches of kAugmentAndTrain, whose samples have values of `value_bytes` bytes. To be
  /// called before such a run() or record(); waits for the stream if there was less room before.
  void allocate_augmented(Stream& stream, std::size_t value_bytes);

  const Array<float>& array(const EngineArray& which) const;
  /// Totals per block since they were last cleared, to be added up. The arrays of options.shares.count shares
  /// follow each other; evaluation adds to the first of this device.
  const Array<Totals>& totals() const { return totals_; }
  const UsedLibraries& libraries() const { return network_.libraries; }
  /// Outputs of the last batch, [images][outputs].
  const float* outputs() const;

 private:
  struct Key {
    Task task;
    int steps, images;
    // NOLINTNEXTLINE(modernize-use-nullptr): the comparison with 0
    auto operator<=>(const Key&) const = default;
  };
  std::size_t largest_sums() const;
  std::size_t blocks() const;
  std::size_t block_of_share(int share) const;
  void evaluate(Stream& stream, Task task, int images, const Inputs& inputs) const;
  void train(Stream& stream, Task task, int images, const Inputs& inputs) const;
  void train_turn(const Pass& pass) const;
  Inputs augmented(Stream& stream, Task task, int images, const Inputs& inputs) const;
  bool step_takes_stack(int images) const;
  void take_step(Stream& stream, int images, const StepInput* input) const;
  AugmentedBatch augmented_batch() const;
  std::vector<GradientSource> gradient_sources(const std::byte* block) const;
  std::vector<GradientSource> share_gradient_sources() const;
  Optimizer make_optimizer(Stream& stream) const;

  const ProgramOptions options_;
  const int channels_, plane_, outputs_;
  const ArrayRange parameter_range_, buffer_range_;
  CompiledNetwork network_;
  Array<std::byte> sums_;    // of JointPass; empty if there are none
  Array<std::byte> memory_;  // [blocks()][network_.memory_bytes]
  Array<float> parameters_, gradient_, buffers_, mean_, std_;
  Array<float> share_gradients_;  // empty without options_.shares
  Array<float> class_weights_;    // of the loss; empty without weights
  LossParameters loss_;
  AugmentPlan augment_;
  Array<AugmentStep> augment_steps_;
  Array<std::byte> augmented_;  // the arrays of augmented_batch(), the samples last
  std::vector<Array<float>> state_;
  Array<Totals> totals_;
  Optimizer optimizer_;
  std::vector<GradientTable> block_sums_;  // of blocks() shares; empty if batches are trained whole
  std::map<Key, Graph> recordings_;
};

}  // namespace sweep::cuda
