// A network compiled for one CUDA device: its ops, its memory, and its steps as CUDA graphs.
//
// A step of a small network is a handful of kernels of a few microseconds, about what one launch costs. So
// steps are captured in graphs, several steps per graph, and launched with one call. A graph has fixed
// pointers and sizes: there is one per task, number of steps and batch size, and everything that varies from
// step to step (rows, learning rate, step number) is read from device memory, where BatchFeed copies it
// before each launch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/augment.h"
#include "core/data/dataset.h"
#include "core/kernels/cuda/compiler.h"
#include "core/kernels/cuda/kernels/augment.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/network/network.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"

namespace sweep::cuda {

enum class Task { kTrain, kAugmentAndTrain, kEvaluate, kPredict };

struct ProgramOptions {
  int batch_size;
  OptimizerOptions optimizer;
  InputTransform transform;
  LossOptions loss;
  double clip_norm;
  std::uint64_t seed;
  int device;           // index of the current device
  std::string kernels;  // EngineOptions::kernels
  bool deterministic;   // EngineOptions::deterministic
  AugmentOptions augment;
};

/// The inputs of consecutive steps in device memory: step i has its StepInput at first + i · stride, and its
/// rows `rows_offset` bytes after that, and the samples' numbers in their set, for kAugmentAndTrain, at
/// `numbers_offset`.
struct StepInputs {
  std::byte* first;
  std::size_t stride, rows_offset, numbers_offset;
};

/// Parameters, buffers and the optimizer's arrays have the layout that Network describes. Not thread-safe.
class Program {
 public:
  Program(Stream& stream, const Network& network, const ProgramOptions& options);

  /// Puts `steps` steps of `images` samples on the stream, as one graph launch. The graph is captured the
  /// first time, so `inputs` has to be the same every time.
  void run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);

  /// Captures the graph of such a run() now, if there is none yet, and launches nothing.
  void record(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
    graph(stream, task, steps, images, inputs);
  }

  /// Makes room for the batches of kAugmentAndTrain, whose samples have values of `value_bytes` bytes. To be
  /// called before such a run() or record(); waits for the stream if there was less room before.
  void allocate_augmented(Stream& stream, std::size_t value_bytes);

  const Array<float>& parameters() const { return parameters_; }
  const Array<float>& gradient() const { return gradient_; }
  const Array<float>& buffers() const { return buffers_; }
  const std::vector<Array<float>>& state() const { return state_; }
  /// Totals per block since they were last cleared, to be added up.
  const Array<DeviceTotals>& totals() const { return totals_; }
  /// Engine::kernels().
  const std::string& kernels() const { return network_.kernels; }
  /// Outputs of the last batch, [images][outputs].
  const float* outputs() const;

 private:
  struct Key {
    Task task;
    int steps, images;
    auto operator<=>(const Key&) const = default;
  };
  const Graph& graph(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);
  void step(Stream& stream, Task task, int images, const StepInput* input, const std::uint32_t* rows) const;
  AugmentedBatch augmented_batch() const;
  Optimizer make_optimizer(Stream& stream) const;

  const ProgramOptions options_;
  const int channels_, plane_, outputs_;
  CompiledNetwork network_;
  Array<std::byte> memory_;
  Array<float> parameters_, gradient_, buffers_, mean_, std_;
  Array<float> class_weights_, weight_sum_;  // of the loss; empty without weights
  LossParameters loss_;
  AugmentPlan augment_;
  Array<AugmentStep> augment_steps_;
  Array<std::byte> augmented_;  // the arrays of augmented_batch(), the samples last
  std::vector<Array<float>> state_;
  Array<DeviceTotals> totals_;
  Optimizer optimizer_;
  std::map<Key, Graph> graphs_;
};

}  // namespace sweep::cuda
