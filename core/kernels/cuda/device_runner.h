// A network on one device, as engines use it: its program, what feeds it, and its arrays on the host.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/kernels/cuda/batch_feed.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime/device_clock.h"

namespace sweep::cuda {

/// The options of the program of a device of this index that computes `shares` of each batch. Throws
/// ConfigError if options.batch_size is too large for the engine.
ProgramOptions program_options(const EngineOptions& options, int device, const BatchShares& shares);

/// Samples [begin, end) of `batch`.
Batch rows_of(const Batch& batch, std::size_t begin, std::size_t end);

/// The input of a step over some of the samples of `batch`, except what the optimizer needs.
StepInput step_input(const Batch& batch, const LossOptions& loss, bool training);
/// With it: of the training step number `step`, from 1.
StepInput training_input(const Batch& batch, const EngineOptions& options, double learning_rate,
                         std::int64_t step);

/// Calls work(rows, begin) for `batch` in passes of up to `size` samples, with the place of the first.
template <class Work>
void for_each_pass(const Batch& batch, std::size_t size, Work work) {
  for (std::size_t begin = 0; begin < batch.size(); begin += size)
    work(rows_of(batch, begin, std::min(begin + size, batch.size())), begin);
}

/// Every function makes the device the thread's current one, and those that return values first run the
/// collected steps and wait. Not thread-safe.
class DeviceRunner {
 public:
  /// `fed_samples`: largest batch that is passed to add(), or to feed().
  DeviceRunner(const Network& network, const ProgramOptions& program, std::size_t fed_samples,
               Placement placement, FedArrays fed = {});

  void select() const { use_device(device_); }
  Stream& stream() { return stream_; }
  Program& program() { return program_; }
  const Program& program() const { return program_; }
  BatchFeed& feed() { return feed_; }
  DeviceClock& clock() { return clock_; }
  /// Most samples that are evaluated at once.
  std::size_t largest_pass() const { return pass_size_; }

  /// Collects steps and starts them together as long as they have the same task and batch size: one graph
  /// launch for up to max_steps() of them.
  void add(Task task, const Batch& batch, const StepInput& input);
  /// Puts the collected steps on the stream.
  void flush();

  /// kEvaluate or kPredict over `rows` samples, at most largest_pass().
  void evaluate(Task task, const Batch& rows, const StepInput& input) { add(task, rows, input); }
  /// The network's outputs for the samples of the last evaluate(), all of them.
  void download_outputs(std::span<float> outputs);

  /// The program's totals of the shares that this device computes, which are set to zero.
  std::vector<Totals> take_totals();

  // The same as Engine's, of what the program has of an array.
  std::vector<float> array(const EngineArray& which);
  void set_array(const EngineArray& which, std::span<const float> values);
  const UsedLibraries& libraries() const { return program_.libraries(); }

 private:
  // A member that comes before the members that need the current device.
  struct Selection {
    explicit Selection(int device) { use_device(device); }
  };

  const int device_;
  const std::size_t pass_size_;
  const BatchShares shares_;
  const Selection selection_;
  Stream stream_;
  Program program_;
  BatchFeed feed_;
  DeviceClock clock_;
  Task task_ = Task::kTrain;  // of the collected steps, as images_
  int images_ = 0;
};

/// The sum of `shares`, in their order.
Totals sum_of(std::span<const Totals> shares);

}  // namespace sweep::cuda
