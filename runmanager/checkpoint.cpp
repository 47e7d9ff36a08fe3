#include "runmanager/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/data/safetensors.h"

namespace sweep {
namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer/";

void append_tensors(TensorFile& file, const Network& network, const std::vector<float>& values,
                    const std::string& prefix) {
  for (const Parameter& parameter : network.parameters()) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(parameter.offset);
    file.tensors.push_back({prefix + parameter.name, parameter.shape,
                            std::vector<float>(first, first + static_cast<std::ptrdiff_t>(parameter.count))});
  }
}

// One line per tensor that does not fit; empty if all do.
std::string misfits(const TensorFile& file, const Network& network) {
  std::string text;
  for (const Parameter& parameter : network.parameters()) {
    const NamedTensor* tensor = file.find(parameter.name);
    if (tensor == nullptr) {
      text += fmt::format("\n  missing: {} {}", parameter.name, to_string(parameter.shape));
    } else if (tensor->shape != parameter.shape) {
      text += fmt::format("\n  wrong shape: {} is {}, the network's is {}", parameter.name,
                          to_string(tensor->shape), to_string(parameter.shape));
    }
  }
  for (const NamedTensor& tensor : file.tensors) {
    const auto is_it = [&tensor](const Parameter& parameter) { return parameter.name == tensor.name; };
    const auto parameters = network.parameters();
    const bool known = std::any_of(parameters.begin(), parameters.end(), is_it);
    if (!known && !tensor.name.starts_with(kOptimizerPrefix)) {
      text += fmt::format("\n  unexpected: {} {}", tensor.name, to_string(tensor.shape));
    }
  }
  return text;
}

}  // namespace

TrainingState capture_state(const Engine& engine, int epoch) {
  return {engine.parameters(), engine.optimizer_state(), engine.step_count(), epoch};
}

void write_checkpoint(const std::filesystem::path& path, const Network& network, const TrainingState& state,
                      const std::string& config) {
  TensorFile file;
  append_tensors(file, network, state.parameters, "");
  for (const OptimizerState& array : state.optimizer) {
    append_tensors(file, network, array.values, std::string(kOptimizerPrefix) + array.name + "/");
  }
  file.metadata = {{"format", "pt"},
                   {"epoch", std::to_string(state.epoch)},
                   {"step_count", std::to_string(state.step_count)},
                   {"config", config}};
  write_safetensors(path, file);
}

std::vector<float> load_weights(const std::filesystem::path& path, const Network& network) {
  const TensorFile file = read_safetensors(path);
  const std::string wrong = misfits(file, network);
  if (!wrong.empty()) {
    throw DataError(
        fmt::format("{}: these are not the weights of network {}:{}", path.string(), network.name(), wrong));
  }
  std::vector<float> values(network.parameter_count());
  for (const Parameter& parameter : network.parameters()) {
    const NamedTensor* tensor = file.find(parameter.name);
    std::copy(tensor->values.begin(), tensor->values.end(),
              values.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  return values;
}

}  // namespace sweep
