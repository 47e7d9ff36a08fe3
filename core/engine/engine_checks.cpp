#include "core/engine/engine_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/data/sample_format.h"

namespace sweep {
namespace {

// An engine would read beyond its outputs.
void check_classes(const Batch& batch, const Network& network, LossOptions::Kind loss) {
  const auto outputs = static_cast<std::int64_t>(element_count(network.output()));
  const std::int64_t classes = outputs == 1 && least_outputs(loss, 2) == 1 ? 2 : outputs;
  const std::span<const std::int32_t> labels = batch.labels();
  for (const std::uint32_t index : batch.indices) {
    const std::int64_t label = labels[index];
    if (label < 0 || label >= classes)
      throw ShapeError("a sample of class " + std::to_string(label) + ", but the network has outputs for " +
                       std::to_string(classes) + " classes, from 0");
  }
}

// Sizes are computed from these, and a NaN among them would be in every parameter after one step.
void check_ranges(const EngineOptions& options) {
  const auto check = [](bool is_in_range, const char* name, auto got, const char* wanted) {
    if (is_in_range) return;
    throw ConfigError(std::string(name) + ": got " + std::to_string(got) + ", want " + wanted);
  };
  constexpr std::size_t kMaxBatch = std::numeric_limits<std::int32_t>::max();
  check(options.batch_size >= 1 && options.batch_size <= kMaxBatch, "batch_size", options.batch_size,
        "1 to 2147483647 samples");
  check(options.threads >= 0, "threads", options.threads, "0 or more");
  check(options.accumulation_steps >= 1, "accumulation_steps", options.accumulation_steps, "1 or more");
  check(options.clip_norm >= 0, "clip_norm", options.clip_norm, "0 or more");
  check(options.loss.label_smoothing >= 0 && options.loss.label_smoothing <= 1, "label_smoothing",
        options.loss.label_smoothing, "0 to 1");
  check(options.loss.beta >= 0, "beta", options.loss.beta, "0 or more");
  const std::vector<float>& weights = options.loss.class_weights;
  for (const float weight : weights)
    check(weight >= 0 && std::isfinite(weight), "class_weights", weight, "numbers >= 0");
  check(weights.empty() || std::ranges::max(weights) > 0, "class_weights", 0, "one > 0");
  check(weights.empty() || options.loss.kind == LossOptions::Kind::kCrossEntropy, "class_weights",
        weights.size(), "none, or cross_entropy as the loss");
  for (const auto& [name, value] : numbers_of(options.optimizer)) {
    const bool decays = name.starts_with("beta");
    check(value >= 0 && (decays ? value < 1 : std::isfinite(value)), name.c_str(), value,
          decays ? "0 or more, and less than 1" : "0 or more");
  }
  const ParallelOptions& parallel = options.parallel;
  check(parallel.data >= 1 && parallel.data <= kMaxReplicas, "parallel.data", parallel.data, "1 to 1024");
  if (!parallel.pipeline) return;
  check(parallel.pipeline->stages >= 0, "parallel.pipeline.stages", parallel.pipeline->stages, "0 or more");
  check(parallel.pipeline->micro_batches >= 1, "parallel.pipeline.micro_batches",
        parallel.pipeline->micro_batches, "1 or more");
}

void check_count(std::size_t values, std::size_t wanted, const std::string& function, const char* what) {
  if (values == wanted) return;
  throw ShapeError(function + ": " + std::to_string(values) + " values for " + std::to_string(wanted) + what);
}

}  // namespace

void check_batch(const Batch& batch, const Network& network, std::size_t batch_size, const LossOptions& loss,
                 std::span<const AugmentStep> augment) {
  if (batch.size() > batch_size) {
    throw ShapeError("a batch of " + std::to_string(batch.size()) + " samples for an engine made for " +
                     std::to_string(batch_size));
  }
  const std::size_t samples =
      value_count(batch.samples) / std::max<std::size_t>(element_count(network.input()), 1);
  const std::size_t per_sample = is_regression(batch.targets) ? element_count(network.output()) : 1;
  if (value_count(batch.samples) != samples * element_count(network.input()))
    throw ShapeError("samples of another size than the network's input " + to_string(network.input()));
  if (value_count(batch.targets) != samples * per_sample)
    throw ShapeError("a batch with " + std::to_string(value_count(batch.targets)) + " targets for its " +
                     std::to_string(samples) + " samples, want " + std::to_string(samples * per_sample));
  if (std::ranges::any_of(batch.indices, [&](std::uint32_t index) { return index >= samples; }))
    throw ShapeError("a batch with an index beyond its " + std::to_string(samples) + " samples");
  if (!is_regression(batch.targets)) check_classes(batch, network, loss.kind);
  if (is_regression(batch.targets) && !accepts_regression(loss.kind))
    throw ShapeError("cross_entropy needs classes as targets, but those of the batch are numbers");
  if (!batch.augment.steps.empty() && !std::ranges::equal(batch.augment.steps, augment))
    throw ConfigError("a batch is to be augmented by the engine, which was not made for these changes");
  if (!batch.augment.steps.empty() && batch.augment.samples.size() != batch.size())
    throw ShapeError("a batch of " + std::to_string(batch.size()) + " samples that the engine augments as " +
                     std::to_string(batch.augment.samples.size()));
}

void check_options(const EngineOptions& options, const Network& network) {
  check_ranges(options);
  const std::size_t weights = options.loss.class_weights.size(), outputs = element_count(network.output());
  if (weights != 0 && weights != outputs)
    throw ConfigError("loss: " + std::to_string(weights) + " class_weights for a network of " +
                      std::to_string(outputs) + " outputs");
  check_transform(options.transform, network.input());
}

void check_outputs(std::span<const float> outputs, const Batch& batch, const Network& network,
                   bool may_be_empty) {
  const std::size_t classes = element_count(network.output());
  if (outputs.size() == batch.size() * classes || (may_be_empty && outputs.empty())) return;
  throw ShapeError("outputs: room for " + std::to_string(outputs.size()) + " numbers, but the batch has " +
                   std::to_string(batch.size()) + " samples of " + std::to_string(classes));
}

void check_array(const EngineArray& which, std::span<const float> values, const Network& network) {
  constexpr const char* kFunctions[] = {"set_parameters", "set_buffers", "set_array", "set_optimizer_state"};
  check_count(values.size(), array_size(which, network), kFunctions[which.kind],
              which.kind == EngineArray::kBuffers ? " of running statistics" : " parameters");
}

std::vector<OptimizerState> Engine::optimizer_state() const {
  std::vector<OptimizerState> state;
  for (const std::string& name : optimizer_arrays())
    state.push_back({name, array({EngineArray::kState, state.size()})});
  return state;
}

void Engine::set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) {
  if (!std::ranges::equal(state, optimizer_arrays(), {}, &OptimizerState::name))
    throw ConfigError("set_optimizer_state: these are not the arrays of this optimizer");
  // All of them before the first one is changed, here and on other ranks.
  const std::size_t wanted = state.empty() ? 0 : parameters().size();
  for (const OptimizerState& array : state)
    check_count(array.values.size(), wanted, "set_optimizer_state", " parameters");
  for (std::size_t i = 0; i < state.size(); ++i) set_array({EngineArray::kState, i}, state[i].values);
  set_step_count(step_count);
}

OptimizerOptions optimizer_of_step(const OptimizerOptions& optimizer, const StepValues& values) {
  if (!values.momentum) return optimizer;
  if (!has_momentum(optimizer))
    throw ConfigError("train: a momentum for an engine that was made for an optimizer without momentum");
  OptimizerOptions changed = with_momentum(optimizer, *values.momentum);
  if (!has_momentum(changed)) throw ConfigError("train: got momentum 0, want more than 0");
  return changed;
}

MeanScale mean_scale(const Batch& batch, const LossOptions& loss, bool training) {
  const std::vector<float>& weights = loss.class_weights;
  const auto count = static_cast<double>(batch.size());
  if (weights.empty() || batch.size() == 0) return {1.0f / static_cast<float>(batch.size()), 1};
  const std::span<const std::int32_t> labels = batch.labels();
  double sum = 0;
  for (const std::uint32_t row : batch.indices) sum += weights[static_cast<std::size_t>(labels[row])];
  if (sum == 0) return {0, training ? 0.0 : 1.0};
  return {static_cast<float>(1 / sum), count / sum};
}

}  // namespace sweep
