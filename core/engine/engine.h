// An engine trains one network on one device. The CPU's is in core/kernels/cpu; others implement the same
// class, and nothing outside core/kernels knows how a device lays out its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "core/network/network.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/placement.h"
#include "core/spec/precision.h"
#include "core/spec/value_counts.h"

namespace sweep {

/// Sums over the samples of the batches since the last Engine::take_totals().
struct Totals {
  double loss = 0;           // sum of the samples' losses; NaN or infinite if one of them was
  std::int64_t correct = 0;  // samples whose largest output is at the label (the first, if several are equal)
  std::int64_t samples = 0;
};

/// One array of an optimizer's state, in the layout of Network::parameters(): "exp_avg" of Adam, for example.
struct OptimizerState {
  std::string name;
  std::vector<float> values;
};

/// What one layer takes of a training step; see Engine::profile().
struct LayerProfile {
  std::string layer;      // Layer::name
  double seconds = 0;     // forward and backward over the batch
  std::size_t bytes = 0;  // its outputs for the whole batch, what it keeps for backward, and its parameters
};

struct EngineOptions {
  Device device = {};
  int threads = 0;             // CPU threads; 0: all that the process may use. Never changes a result
  std::size_t batch_size = 1;  // the largest batch that will be passed
  OptimizerOptions optimizer = {};
  PixelTransform transform = {};
  std::uint64_t seed = 0;  // of dropout
  LossOptions loss = {};
  double clip_norm =
      0;  // gradients longer than this (all parameters as one vector) are shortened to it; 0: never
  /// What Engine::kernels() said of the engine whose training goes on; else empty.
  std::string kernels = {};
  /// Of batches that name their set. Never changes a result, and nothing at all on the CPU.
  Placement placement = Placement::kAuto;
  Precision precision = Precision::kFp32;
  /// false: kernels may be chosen that add up in any order, if they are faster, and so give other last bits
  /// each time; gives_same_bits() says whether some were. On CUDA only NVIDIA's libraries have such; the CPU
  /// has none.
  bool deterministic = true;
};

/// Trains with options.loss. A call may return before its work is done;
/// calls take effect in order, and those that return values wait. Not thread-safe; different engines are
/// independent. The bits of every result depend on the network, the values and the order of calls, never on
/// threads or load; on CUDA also on kernels(), and they are the same every time if
/// gives_same_bits(kernels()).
class Engine {
 public:
  virtual ~Engine() = default;

  /// Where it trains.
  virtual Device device() const { return {}; }

  /// Does now what the first train() and evaluate() of an epoch over these samples would have to do once:
  /// copies sets to the device, loads and records its work. For honest times of first epochs; changes no
  /// result and may be left out. Returns where the training samples are from then on, kDevice or kHost;
  /// nothing where that makes no difference, as on the CPU. Throws DeviceError if options.placement is
  /// kDevice and a set does not fit.
  virtual std::optional<Placement> prepare(const Samples& /*training*/,
                                           std::span<const Samples> /*evaluation*/) {
    return std::nullopt;
  }

  /// Forward, backward and one optimizer step. `learning_rate` >= 0. Throws ShapeError if the batch is larger
  /// than options.batch_size or its samples are not of the network's input size.
  virtual void train(const Batch& batch, double learning_rate) = 0;

  /// Momentum of sgd and rmsprop, beta1 of adam and adamw, from the next step on; in (0, 1). Throws
  /// ConfigError if an engine of this device cannot change it, or was made for sgd or rmsprop without.
  virtual void set_momentum(double momentum);

  /// Forward only, in evaluation mode (no dropout): adds to the totals.
  virtual void evaluate(const Batch& batch) = 0;

  /// Forward only, in evaluation mode: writes the network's outputs, [batch.size(), outputs] row-major,
  /// before softmax.
  virtual void predict(const Batch& batch, std::span<float> outputs) = 0;

  /// Takes the batch forward and backward on one thread, layer by layer with a clock, and forgets what came
  /// out: parameters, optimizer, totals, gradients() and step_count() stay as they are. One entry per layer,
  /// in the network's order. Layers that the device does in one go (a convolution with its relu and pooling)
  /// count whole under the first of them; the others, and those without work (flatten), have zeros. Bytes are
  /// as the device lays the arrays out, padding included. Empty from an engine that measures nothing. Throws
  /// as train().
  virtual std::vector<LayerProfile> profile(const Batch& /*batch*/) { return {}; }

  /// Which kernels the engine has chosen where it had a choice that changes bits; empty if it had none. An
  /// engine made with this as EngineOptions::kernels takes the same ones, and says so by returning the same
  /// text; if it returns another, because the device or its libraries are not what they were, it would give
  /// other bits.
  virtual std::string kernels() const { return {}; }

  /// Returns the sums since the last call and starts new ones.
  virtual Totals take_totals() = 0;

  /// Seconds, by the device's own clock, that it worked on what was asked for since the last call: where that
  /// is less than has passed, the device waited for the host. Waits for the work. Nothing from an engine that
  /// works on the caller's processor.
  virtual std::optional<double> take_device_seconds() { return std::nullopt; }

  /// How many batches should pass between two calls of take_totals() where nobody needs them sooner: a device
  /// that works beside the caller stands still while it is waited for. A constant of the engine, so that sums
  /// have the same bits every time.
  virtual std::int64_t batches_between_totals() const { return 1; }

  /// All parameters, in the layout of Network::parameters().
  virtual std::vector<float> parameters() const = 0;
  virtual void set_parameters(std::span<const float> values) = 0;

  /// All running statistics, in the layout of Network::buffers(). They start as initial_buffers(). Here and
  /// in set_buffers() what is inherited is for engines whose networks have none.
  virtual std::vector<float> buffers() const { return {}; }
  /// Engines whose networks have some throw ShapeError for another number of values.
  virtual void set_buffers(std::span<const float> /*values*/) {}

  /// Gradient of the last train() batch's mean loss, in the layout of Network::parameters(); weight decay not
  /// included. Zeros before the first.
  virtual std::vector<float> gradients() const = 0;

  /// What is in parameters() and gradients(), counted on the device between `limits` (see ValueCounts), which
  /// grow. Numbers, extremes and counts are exact; sums are rounded as doubles are, the same way every time.
  /// Nothing from an engine that trains in the host's memory: there, whoever has the values can count as
  /// well. Throws ConfigError if the device cannot count between so many limits.
  virtual std::optional<ParameterCounts> count_parameters(std::span<const double> /*limits*/) const {
    return std::nullopt;
  }

  /// State of the optimizer: its arrays and the number of steps taken, which a checkpoint keeps.
  virtual std::vector<OptimizerState> optimizer_state() const = 0;
  virtual std::int64_t step_count() const = 0;
  /// Throws ConfigError if the arrays are not those of this engine's optimizer.
  virtual void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) = 0;
};

/// Whether engines that said this of their kernels(), both now and in an earlier process, give the same bits
/// whenever they do the same work: always, unless EngineOptions::deterministic was false.
bool gives_same_bits(std::string_view kernels);

/// Compiles `network` for options.device. Throws DeviceError, with the reason, if the device cannot be used,
/// or not with options.precision, and ConfigError if its engine lacks a layer.
std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options);

}  // namespace sweep
