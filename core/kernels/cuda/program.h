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
#include <optional>
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

/// kTrainParts: see GradientParts.
enum class Task { kTrain, kAugmentAndTrain, kTrainParts, kEvaluate, kPredict };

/// A batch that several devices share is cut into so many parts, whichever devices there are: each part is a
/// pass of its own, whose gradient and totals are kept apart, so that bits do not depend on who computes it.
inline constexpr int kGradientParts = 8;

/// The first sample of a part, or the number of samples for part kGradientParts. A batch of fewer samples
/// than parts has empty ones.
inline std::size_t part_begin(std::size_t samples, int part) {
  return samples * static_cast<std::size_t>(part) / static_cast<std::size_t>(kGradientParts);
}

/// The parts of each batch that a device computes: [first, end). None: it trains whole batches alone.
struct GradientParts {
  int first = 0, end = 0;
  bool none() const { return first == end; }
};

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
  GradientParts parts = {};
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
  /// first time, so `inputs` has to be the same every time. kTrainParts: `images` are the samples of the
  /// whole batch, which may be more than batch_size, and the input's rows only those of options.parts; one
  /// step, which leaves its gradients in part_gradients() and its totals in totals().
  void run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);

  /// Captures the graph of such a run() now, if there is none yet, and launches nothing.
  void record(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
    graph(stream, task, steps, images, inputs);
  }

  bool is_recorded(Task task, int steps, int images) const {
    return graphs_.contains(Key{task, steps, images});
  }

  /// Takes a step with the sum of part_gradients(), in order: after kTrainParts with the same `inputs`, when
  /// all devices' parts are there.
  void take_step(Stream& stream, const StepInputs& inputs) const;

  /// Makes room for the batches of kAugmentAndTrain, whose samples have values of `value_bytes` bytes. To be
  /// called before such a run() or record(); waits for the stream if there was less room before.
  void allocate_augmented(Stream& stream, std::size_t value_bytes);

  const Array<float>& parameters() const { return parameters_; }
  const Array<float>& gradient() const { return gradient_; }
  const Array<float>& buffers() const { return buffers_; }
  const std::vector<Array<float>>& state() const { return state_; }
  /// Totals per block since they were last cleared, to be added up. With options.parts the arrays of all
  /// kGradientParts follow each other; evaluation adds to the first of options.parts.
  const Array<DeviceTotals>& totals() const { return totals_; }
  /// With options.parts: the gradient of each part, [kGradientParts][parameters].
  const Array<float>& part_gradients() const { return part_gradients_; }
  /// Engine::kernels().
  const std::string& kernels() const { return network_.kernels; }
  /// Outputs of the last batch, [images][outputs].
  const float* outputs() const;

 private:
  struct Key {
    Task task;
    int steps, images;
    // NOLINTNEXTLINE(modernize-use-nullptr): the comparison with 0
    auto operator<=>(const Key&) const = default;
  };
  const Graph& graph(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);
  // What a pass has of a batch: images [first, first + images).
  struct Share {
    int images, first = 0;
  };
  void train_parts(Stream& stream, int images, const StepInput* input, const std::uint32_t* rows) const;
  // A step, or with kTrainParts all of it but the optimizer.
  void step(Stream& stream, Task task, const Share& share, const StepInput* input, const std::uint32_t* rows,
            DeviceTotals* totals) const;
  DeviceTotals* totals_of_part(int part) const;
  AugmentedBatch augmented_batch() const;
  std::vector<GradientSource> gradient_sources() const;
  Optimizer make_optimizer(Stream& stream) const;

  const ProgramOptions options_;
  const int channels_, plane_, outputs_;
  CompiledNetwork network_;
  Array<std::byte> memory_;
  Array<float> parameters_, gradient_, buffers_, mean_, std_;
  Array<float> part_gradients_;  // empty without options_.parts
  Array<float> class_weights_;   // of the loss; empty without weights
  LossParameters loss_;
  AugmentPlan augment_;
  Array<AugmentStep> augment_steps_;
  Array<std::byte> augmented_;  // the arrays of augmented_batch(), the samples last
  std::vector<Array<float>> state_;
  Array<DeviceTotals> totals_;
  Optimizer optimizer_;
  std::optional<GradientSum> part_sum_;  // with options_.parts
  std::map<Key, Graph> graphs_;
};

}  // namespace sweep::cuda
