#include "runmanager/inspect/file_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/safetensors.h"
#include "runmanager/records/checkpoint.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOptimizerPrefix = "optimizer/";

// Checks that the tensor `name` exists and that its first extent is `outputs`.
void check_parameter(const TensorIndex& file, const std::string& name, const Json& outputs,
                     FileFinding& finding) {
  const NamedTensor* tensor = file.find(name);
  if (tensor == nullptr) {
    finding.problems.push_back("has no " + name + ", a parameter of the run's network");
  } else if (outputs.is_number_integer() &&
             (tensor->shape.empty() || tensor->shape[0] != outputs.get<std::int64_t>())) {
    finding.problems.push_back(fmt::format("{} is {}, but the layer has {} outputs", name,
                                           to_string(tensor->shape), outputs.get<std::int64_t>()));
  }
}

// Checks the tensors of the network's own conv2d and linear layers against the configuration of the run. Only
// the first extent is known, since the configuration has no input sizes. Layers inside a sequential or
// residual one are not checked.
void check_layers(const TensorIndex& file, const Json& layers, FileFinding& finding) {
  for (const Json& layer : layers) {
    if (!layer.is_object() || !layer.value("name", Json()).is_string()) continue;
    const std::string name = layer["name"].get<std::string>();
    const char* outputs = layer.contains("out_channels") ? "out_channels" : "out_features";
    if (!layer.contains(outputs)) continue;  // No weight matrix, or none of its own.
    check_parameter(file, name + ".weight", layer[outputs], finding);
    if (layer.value("bias", Json(true)) == true)
      check_parameter(file, name + ".bias", layer[outputs], finding);
  }
}

// Checks that optimizer state, such as "optimizer/exp_avg/conv1.weight", has the shape of its parameter.
void check_optimizer(const TensorFile& file, const TensorIndex& index, FileFinding& finding) {
  for (const NamedTensor& tensor : file.tensors) {
    if (!tensor.name.starts_with(kOptimizerPrefix)) continue;
    const std::size_t slash = tensor.name.find('/', kOptimizerPrefix.size());
    const std::string name = slash == std::string::npos ? "" : tensor.name.substr(slash + 1);
    const NamedTensor* parameter = index.find(name);
    if (parameter == nullptr) {
      finding.problems.push_back(fmt::format("has {}, but no {}", tensor.name, name));
    } else if (parameter->shape != tensor.shape) {
      finding.problems.push_back(fmt::format("{} is {}, but {} is {}", tensor.name, to_string(tensor.shape),
                                             name, to_string(parameter->shape)));
    }
  }
}

// A note, not a problem: the weights of a run that diverged are not finite.
void count_non_finite(const TensorFile& file, FileFinding& finding) {
  std::size_t count = 0;
  for (const NamedTensor& tensor : file.tensors) {
    count += static_cast<std::size_t>(std::count_if(tensor.values.begin(), tensor.values.end(),
                                                    [](float value) { return !std::isfinite(value); }));
  }
  if (count > 0) finding.notes.push_back(fmt::format("{} of its values are not finite", count));
}

// Checks that the checkpoint of a completed run was written after its last epoch.
void check_epoch(std::optional<int> epoch, const RunRecord& record, FileFinding& finding) {
  if (!epoch || record.status != RunStatus::kCompleted || record.epochs.empty()) return;
  const int last = record.epochs.back().epoch;
  if (*epoch == last) return;
  finding.problems.push_back(
      fmt::format("is of epoch {}, but the run was completed with epoch {}", *epoch, last));
}

}  // namespace

std::optional<int> check_checkpoint(const std::filesystem::path& path, const RunRecord* record,
                                    FileFinding& finding) {
  TensorFile file;
  try {
    file = read_safetensors(path);
    verify_checksums(file);
  } catch (const DataError& error) {
    finding.problems.push_back(without_path(error.what(), path) + "; the weights are lost");
    return std::nullopt;
  }
  if (file.tensors.empty()) finding.problems.emplace_back("holds no weights");
  const TensorIndex index(file);
  const std::optional<int> epoch = last_epoch_of(file);
  if (record != nullptr && record->config.is_object()) {
    const auto network = record->config.find("network");
    if (network != record->config.end() && network->is_object() && network->contains("layers"))
      check_layers(index, (*network)["layers"], finding);
    check_epoch(epoch, *record, finding);
  }
  check_optimizer(file, index, finding);
  count_non_finite(file, finding);
  return epoch;
}

}  // namespace sweep
