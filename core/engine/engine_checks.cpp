#include "core/engine/engine_checks.h"

#include <algorithm>

#include "core/base/error.h"

namespace sweep {

void check_batch(const Batch& batch, const Network& network, std::size_t batch_size, const LossOptions& loss,
                 std::span<const AugmentStep> augment) {
  if (batch.size() > batch_size) {
    throw ShapeError("a batch of " + std::to_string(batch.size()) + " samples for an engine made for " +
                     std::to_string(batch_size));
  }
  const std::size_t samples =
      value_count(batch.samples) / std::max<std::size_t>(element_count(network.input()), 1);
  const std::size_t per_sample = is_regression(batch.targets) ? element_count(network.output()) : 1;
  if (value_count(batch.samples) != samples * element_count(network.input()) ||
      value_count(batch.targets) != samples * per_sample) {
    throw ShapeError("samples of another size than the network's input " + to_string(network.input()) +
                     (per_sample == 1 ? "" : ", or targets of another size than its output"));
  }
  if (is_regression(batch.targets) && !accepts_regression(loss.kind))
    throw ShapeError("cross_entropy needs classes as targets, but those of the batch are numbers");
  if (!batch.augment.steps.empty() && !std::ranges::equal(batch.augment.steps, augment))
    throw ConfigError("a batch is to be augmented by the engine, which was not made for these changes");
}

void check_loss(const LossOptions& loss, const Network& network) {
  const std::size_t outputs = element_count(network.output());
  if (loss.class_weights.empty() || loss.class_weights.size() == outputs) return;
  throw ConfigError("loss: " + std::to_string(loss.class_weights.size()) +
                    " class_weights for a network of " + std::to_string(outputs) + " outputs");
}

void check_outputs(std::span<const float> outputs, const Batch& batch, const Network& network) {
  const std::size_t classes = element_count(network.output());
  if (outputs.size() == batch.size() * classes) return;
  throw ShapeError("predict: room for " + std::to_string(outputs.size()) + " outputs, but the batch has " +
                   std::to_string(batch.size()) + " samples of " + std::to_string(classes));
}

void check_count(std::size_t given, std::size_t expected, const char* function, const char* noun) {
  if (given == expected) return;
  throw ShapeError(std::string(function) + ": " + std::to_string(given) + " values for " +
                   std::to_string(expected) + " " + noun);
}

void check_optimizer_state(std::span<const OptimizerState> state, const OptimizerOptions& optimizer) {
  const std::vector<std::string> names = state_names(optimizer);
  const bool same =
      std::equal(state.begin(), state.end(), names.begin(), names.end(),
                 [](const OptimizerState& s, const std::string& name) { return s.name == name; });
  if (!same) throw ConfigError("set_optimizer_state: these are not the arrays of this optimizer");
}

OptimizerOptions optimizer_of_step(const OptimizerOptions& optimizer, const StepValues& values) {
  if (!values.momentum) return optimizer;
  if (!has_momentum(optimizer))
    throw ConfigError("train: a momentum for an engine that was made for an optimizer without momentum");
  return with_momentum(optimizer, *values.momentum);
}

}  // namespace sweep
