// The interface of the engines, which train one network on one device. Implementations
// are in core/kernels/cpu and core/kernels/cuda; nothing outside core/kernels depends on
// how a device lays out its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/engine/parallel.h"
#include "core/network/histogram_counts.h"
#include "core/network/loss.h"
#include "core/network/network.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"

namespace sweep {

/// Which of an engine's arrays.
struct EngineArray {
  enum Kind { kParameters, kBuffers, kGradient, kState } kind = kParameters;
  std::size_t index = 0;  // of kState: its place in state_names()
};

/// One array of an optimizer's state, for example Adam's "exp_avg".
struct OptimizerState {
  std::string name;           // from state_names()
  std::vector<float> values;  // in the layout of Network::parameters()
};

/// Time and memory of one layer in a training step; see Engine::profile().
struct LayerProfile {
  std::string layer;      // Layer::name
  double seconds = 0;     // forward and backward over the batch
  std::size_t bytes = 0;  // outputs for the whole batch, values saved for backward, and parameters
};

/// Where a GPU reads the samples from.
enum class Placement {
  kAuto,    // kDevice if the set fits into the memory that is free when it is first needed, otherwise kHost
  kDevice,  // the whole set is copied to the device once; a batch is a list of its rows
  kHost,    // each batch is gathered on the host and copied while the device works on the previous one
};

inline const EnumNames<Placement>& placement_names() {
  static const EnumNames<Placement> names("placement", {"auto", "device", "host"});
  return names;
}

struct EngineOptions {
  Device device = {};
  int threads = 0;             // CPU threads, >= 0; 0: all that the process may use. Never changes a result
  std::size_t batch_size = 1;  // samples of the largest batch that will be passed, >= 1
  OptimizerOptions optimizer = {};
  InputTransform transform = {};
  std::uint64_t seed = 0;  // of dropout
  LossOptions loss = {};
  /// Largest norm of the gradient over all parameters; longer gradients are scaled down, as
  /// torch.nn.utils.clip_grad_norm_ does. >= 0; 0: no limit.
  double clip_norm = 0;
  /// The changes of batches with Batch::augment, which only the CUDA engine makes.
  AugmentOptions augment = {};
  /// Where samples of batches with Batch::set are stored. Never changes a result; ignored by the CPU.
  Placement placement = Placement::kAuto;
  /// false: allows faster kernels whose order of summation varies, so that the last bits differ from run to
  /// run; is_deterministic() tells whether such kernels are used. On CUDA only NVIDIA's libraries have them;
  /// the CPU has none.
  bool deterministic = true;
  /// The devices that train together. `device` is the first of them, or of their kind.
  ParallelOptions parallel = {};
  /// Parts that each batch is trained in, one after another, so that less memory is taken; >= 1. The
  /// optimizer takes one step with the gradient of the mean over the whole batch. Batch normalization
  /// normalizes each part by itself. Without it, nothing changes on the CPU, neither results nor memory, and
  /// on CUDA results change by rounding.
  int accumulation_steps = 1;
};

/// Trains one network with one optimizer and one loss.
///
/// Calls may return before their work is done; they take effect in order, and calls that return values wait.
/// Not thread-safe; different engines are independent. Results depend bit for bit on the network, the values
/// and the order of calls, never on the number of threads or the load; on CUDA also on kernels(), and they
/// are reproducible only if is_deterministic(kernels()). Errors of a device throw DeviceError from any call;
/// the engine must not be used afterwards.
class Engine {
 public:
  virtual ~Engine() = default;

  /// The device that trains.
  virtual Device device() const { return {}; }

  /// Does the one-time work of the first train() and evaluate() over these samples: copies sets to the
  /// device, loads kernels, captures graphs. Optional; keeps this work out of the time of the first epoch and
  /// changes no result. Returns where the training samples are stored from now on, kDevice or kHost; nothing
  /// if the engine does not distinguish them, as on the CPU. Throws DeviceError if options.placement is
  /// kDevice and a set does not fit.
  virtual std::optional<Placement> prepare(const Subset& /*training*/,
                                           std::span<const Subset> /*evaluation*/) {
    return std::nullopt;
  }

  /// Forward, backward and one optimizer step; adds to the totals. `values`: the learning rate, and if it has
  /// one the momentum of sgd and rmsprop, or beta1 of adam and adamw, from this step on. An empty batch does
  /// nothing. Throws ShapeError if the batch is larger than options.batch_size or its samples do not have the
  /// network's input size; ConfigError if it has changes (Batch::augment) that are not options.augment, or
  /// that the engine cannot make, and if the optimizer has no momentum to change, see has_momentum().
  virtual void train(const Batch& batch, const StepValues& values) = 0;

  /// Forward only, in evaluation mode (no dropout, running statistics): adds to the totals if it `counts`,
  /// and writes the logits, [batch.size(), classes] row-major, to `outputs`, which may be empty if it counts.
  /// Throws as train(), and ShapeError if `outputs` has another size.
  virtual void evaluate(const Batch& batch, std::span<float> outputs = {}, bool counts = true) = 0;
  void predict(const Batch& batch, std::span<float> outputs) { evaluate(batch, outputs, false); }

  /// Measures forward and backward of the batch layer by layer, on one thread. Discards the results:
  /// parameters, optimizer, totals, gradients() and step_count() do not change. Returns one entry per layer,
  /// in the network's order. Fused layers (a convolution with its relu and pooling) are counted under the
  /// first of them; the others, and layers without work (flatten), are zero. Bytes include the padding of the
  /// device's layout. Empty if the engine cannot measure. Throws as train().
  virtual std::vector<LayerProfile> profile(const Batch& /*batch*/) { return {}; }

  /// Names the kernels that compute the network, where others would give other bits: "builtin", or libraries
  /// with their versions, and their device. Empty if there are no others.
  virtual std::string kernels() const { return {}; }

  /// Returns the sums since the last call and resets them. Waits for the device.
  virtual Totals take_totals() = 0;

  /// Returns for how many seconds the device was busy since the last call, by its own clock; the rest of the
  /// elapsed time it waited for the host. Waits for the device. Nothing from an engine that runs on the host.
  virtual std::optional<double> take_device_seconds() { return std::nullopt; }

  /// Returns for how many seconds the training since the last call waited for other devices, to exchange what
  /// each has computed; not what was exchanged meanwhile. Nothing from an engine on one device.
  virtual std::optional<double> take_communication_seconds() { return std::nullopt; }

  /// The recommended number of batches between two calls of take_totals(), >= 1: an asynchronous device idles
  /// while the caller waits for it. A constant of the engine, so that sums have the same bits every time.
  virtual std::int64_t batches_between_totals() const { return 1; }

  /// Returns an array, in the layout of Network::parameters() or, kBuffers, of Network::buffers().
  /// kParameters: zeros in a new engine. kBuffers: the running statistics; initial_buffers() in a new engine.
  /// kGradient: of the mean loss of the last train() batch, clipped, but without weight decay; zeros before
  /// the first batch. kState: what the optimizer keeps.
  virtual std::vector<float> array(const EngineArray& which) const = 0;
  /// Changes an array, except kGradient. Throws ShapeError for another number of values.
  virtual void set_array(const EngineArray& which, std::span<const float> values) = 0;
  std::vector<float> parameters() const { return array({EngineArray::kParameters}); }
  void set_parameters(std::span<const float> values) { set_array({EngineArray::kParameters}, values); }
  std::vector<float> buffers() const { return array({EngineArray::kBuffers}); }
  void set_buffers(std::span<const float> values) { set_array({EngineArray::kBuffers}, values); }
  std::vector<float> gradients() const { return array({EngineArray::kGradient}); }

  /// Counts the values of parameters() and gradients() on the device between the increasing `limits`, see
  /// HistogramCounts. Numbers, extremes and counts are exact; sums are in double and reproducible. Nothing
  /// from an engine that trains in host memory, where the caller can count just as well. Throws ConfigError
  /// if the device cannot count between so many limits.
  virtual std::optional<ParameterCounts> parameter_histograms(std::span<const double> /*limits*/) const {
    return std::nullopt;
  }

  /// state_names() of its optimizer, and the number of steps taken.
  virtual std::vector<std::string> optimizer_arrays() const = 0;
  virtual std::int64_t step_count() const = 0;
  virtual void set_step_count(std::int64_t steps) = 0;
  /// The state of the optimizer, for checkpoints: its arrays, with their names.
  std::vector<OptimizerState> optimizer_state() const;
  /// Throws ConfigError if the arrays are not those of this engine's optimizer,
  /// ShapeError for another number of values.
  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count);
};

/// What kernels() says of a library that adds in another order each time.
inline constexpr std::string_view kInAnyOrder = " in any order";

/// Whether two engines with these kernels() give the same bits for the same work, in this or in another
/// process. Always true unless EngineOptions::deterministic was false.
inline bool is_deterministic(std::string_view kernels) {
  return kernels.find(kInAnyOrder) == std::string_view::npos;
}

/// Compiles `network`, which is copied, for options.device. Throws DeviceError, with the
/// reason, if the device cannot be used; ConfigError if an option is out of its range, does not fit the
/// network, or no layer of it computes anything.
std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options);

/// Bytes of the buffers that make_engine(network, options) would allocate in host memory and fill:
/// parameters, gradients and their partial sums, optimizer state, activations. They are counted by the code
/// that allocates them. Nothing for engines of other devices than the CPU, whose libraries choose their
/// own workspaces. Throws as make_engine(). Takes about as long as it, but none of the memory. Thread-safe.
std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options);

}  // namespace sweep
