// A network compiled for one CUDA device: its ops, its memory, and the work of a step as graphs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/kernels/cuda/compiler.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/network/network.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"

namespace sweep::cuda {

enum class Task { kTrain, kEvaluate, kPredict };

struct ProgramOptions {
  int batch_size;
  OptimizerOptions optimizer;
  PixelTransform transform;
  LossOptions loss;
  double clip_norm;
  std::uint64_t seed;
  int device;           // its index, the one that use_device() chose
  std::string kernels;  // EngineOptions::kernels
  bool deterministic;   // EngineOptions::deterministic
};

/// Where the inputs of consecutive steps lie in the device's memory, at the same distance from each other: a
/// StepInput, and `rows_offset` bytes after it the rows.
struct StepInputs {
  std::byte* first;
  std::size_t stride, rows_offset;
};

/// Parameters, buffers and the arrays of the optimizer lie as Network describes them.
class Program {
 public:
  Program(Stream& stream, const Network& network, const ProgramOptions& options);

  /// Puts `steps` steps of `images` samples on the stream. The work is recorded the first time and then
  /// started in one call, so `inputs` has to be the same every time.
  void run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);

  /// Records that work now, if it is new, and starts nothing.
  void record(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
    graph(stream, task, steps, images, inputs);
  }

  const Array<float>& parameters() const { return parameters_; }
  const Array<float>& gradient() const { return gradient_; }
  const Array<float>& buffers() const { return buffers_; }
  const std::vector<Array<float>>& state() const { return state_; }
  /// Sums since they were last cleared, to be added up.
  const Array<DeviceTotals>& totals() const { return totals_; }
  /// Engine::kernels().
  const std::string& kernels() const { return network_.kernels; }
  /// Of the last batch: [images][outputs].
  const float* outputs() const;

 private:
  struct Key {
    Task task;
    int steps, images;
    auto operator<=>(const Key&) const = default;
  };
  const Graph& graph(Stream& stream, Task task, int steps, int images, const StepInputs& inputs);
  void step(Stream& stream, Task task, int images, const StepInput* input, const std::uint32_t* rows) const;
  Optimizer make_optimizer(Stream& stream) const;

  const ProgramOptions options_;
  const int channels_, plane_, classes_;
  CompiledNetwork network_;
  Array<std::byte> memory_;
  Array<float> parameters_, gradient_, buffers_, mean_, std_;
  std::vector<Array<float>> state_;
  Array<DeviceTotals> totals_;
  Optimizer optimizer_;
  std::map<Key, Graph> graphs_;
};

}  // namespace sweep::cuda
