// A network on one device, as engines use it: its program, what feeds it, and its arrays on the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/kernels/cuda/batch_feed.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime/device_clock.h"

namespace sweep::cuda {

/// For ProgramOptions::batch_size. Throws ConfigError if it is too large for the engine.
int checked_batch_size(std::size_t batch_size);

/// The options of the program for passes over up to `batch_size` samples, on the device of this index.
ProgramOptions program_options(const EngineOptions& options, int device, int batch_size);

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

  /// Collects steps and starts them together as long as they have the same task and batch size: one graph
  /// launch for up to max_steps() of them.
  void add(Task task, const Batch& batch, const StepInput& input);
  /// Puts the collected steps on the stream.
  void flush();

  /// One step that leaves the network's outputs, which are copied to `outputs`.
  void run_and_download(Task task, const Batch& batch, std::span<float> outputs);

  std::vector<float> download(const Array<float>& array);
  /// `function` and `contents`: of check_count().
  void upload(std::span<const float> values, const Array<float>& array, const char* function,
              const char* contents);

  /// `count` of the program's totals, from `first` on, which are set to zero.
  std::vector<DeviceTotals> take_totals(std::size_t first, std::size_t count);

  std::vector<OptimizerState> optimizer_state(const OptimizerOptions& optimizer);
  /// Throws as Engine::set_optimizer_state().
  void set_optimizer_state(std::span<const OptimizerState> state, const OptimizerOptions& optimizer);

 private:
  // A member that comes before the members that need the current device.
  struct Selection {
    explicit Selection(int device) { use_device(device); }
  };

  const int device_;
  const Selection selection_;
  Stream stream_;
  Program program_;
  BatchFeed feed_;
  DeviceClock clock_;
  Task task_ = Task::kTrain;  // of the collected steps, as images_
  int images_ = 0;
};

/// The sum of `parts`, in their order.
Totals sum_of(std::span<const DeviceTotals> parts);

}  // namespace sweep::cuda
