#include "runmanager/records/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/safetensors.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/record.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOptimizerPrefix = "optimizer/";
constexpr const char* kKernels = "kernels";  // in files of earlier versions, outside the record
constexpr const char* kHeaderChecksum = "header_crc32c";

void append_tensors(TensorFileView& file, std::span<const Parameter> layout, std::span<const float> values,
                    const std::string& prefix) {
  for (const Parameter& parameter : layout) {
    file.tensors.push_back(
        {prefix + parameter.name, parameter.shape, values.subspan(parameter.offset, parameter.count)});
  }
}

// The tensors of `layout` in one array. They are there: see require_fit().
std::vector<float> joined_tensors(const TensorFile& file, std::span<const Parameter> layout,
                                  std::size_t count, const std::string& prefix) {
  std::vector<float> values(count);
  const TensorIndex index(file);
  for (const Parameter& parameter : layout) {
    const std::vector<float>& tensor = index.find(prefix + parameter.name)->values;
    std::ranges::copy(tensor, values.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  return values;
}

Weights weights_of(const TensorFile& file, const Network& network) {
  return {joined_tensors(file, network.parameters(), network.parameter_count(), ""),
          joined_tensors(file, network.buffers(), network.buffer_count(), "")};
}

// CRC-32C of all tensors, because safetensors has no checksum. `File`: TensorFile or TensorFileView.
template <class File>
std::uint32_t checksum(const File& file) {
  std::uint32_t crc = 0;
  for (const auto& tensor : file.tensors) {
    crc = tbwriter::crc32c(
        {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)}, crc);
  }
  return crc;
}

// One checksum of all that is in the header, names and shapes of the tensors included. Those of the long
// values are kept, so that they need not be computed anew for every checkpoint: `file` needs only the short
// ones.
template <class File>
std::string header_checksum(const File& file, std::uint32_t epochs, std::uint32_t config,
                            std::uint32_t provenance) {
  std::string tensors;
  for (const auto& tensor : file.tensors) tensors += tensor.name + " " + to_string(tensor.shape) + "\n";
  std::string all = fmt::format("{} {} {} {} ", epochs, config, provenance, tbwriter::crc32c(tensors));
  for (const char* key : {"format", "epoch", "step_count", "progress", kKernels}) {
    const auto value = file.metadata.find(key);
    all += fmt::format("{} ", value == file.metadata.end() ? 0 : tbwriter::crc32c(value->second));
  }
  return std::to_string(tbwriter::crc32c(all));
}

void append(MetadataText& text, const std::string& more) {
  text.escaped += escaped_text(more);
  text.crc = tbwriter::crc32c(more, text.crc);
}

std::vector<Json> epochs_of(const std::string& text) {
  std::vector<Json> epochs;
  for (const std::string_view line : lines_of(text)) epochs.push_back(parse_json_text(line, "its epoch"));
  return epochs;
}

const std::string& required_metadata(const TensorFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) throw DataError("has no \"" + key + "\", so no run can go on from it");
  return found->second;
}

RunProgress progress_of(const TensorFile& file) {
  Json json = parse_json_text(required_metadata(file, "progress"), "its progress");
  Json& record = json.at("record");
  if (const auto kernels = file.metadata.find(kKernels); kernels != file.metadata.end())
    record["kernels"] = kernels->second == "own" ? "builtin" : kernels->second;
  record["config"] = parse_json_text(required_metadata(file, "config"), "its config");
  record["provenance"] = parse_json_text(required_metadata(file, "provenance"), "its provenance");
  record["epochs"] = Json::array();
  RunProgress progress;
  progress.record = run_record_from_json(std::move(record), "its progress");
  add_epochs(epochs_of(required_metadata(file, "epochs")), progress.record);
  const std::vector<EpochRecord>& epochs = progress.record.epochs;
  const std::string last = std::to_string(epochs.empty() ? 0 : epochs.back().epoch);
  if (required_metadata(file, "epoch") != last) {
    throw DataError(fmt::format("has the weights of epoch {}, but its record ends with epoch {}",
                                required_metadata(file, "epoch"), last));
  }
  progress.position = run_position_from_json(json);
  return progress;
}

// The optimizer's arrays by name, in the order of the file.
std::vector<std::string> optimizer_arrays(const TensorFile& file) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : file.tensors) {
    if (!tensor.name.starts_with(kOptimizerPrefix)) continue;
    const std::string rest = tensor.name.substr(kOptimizerPrefix.size());
    const std::string name = rest.substr(0, rest.find('/'));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

void check_checksums(const TensorFile& file) {
  const auto crc_of = [&file](const char* key) { return tbwriter::crc32c(required_metadata(file, key)); };
  required_metadata(file, "progress");  // throws if it has none
  const std::string expected = required_metadata(file, kHeaderChecksum),
                    found = header_checksum(file, crc_of("epochs"), crc_of("config"), crc_of("provenance"));
  if (required_metadata(file, "crc32c") != std::to_string(checksum(file)) || expected != found)
    throw DataError("is damaged: its checksum is not that of its content");
}

void require_fit(const TensorFile& file, const Network& network, FileUse use) {
  const std::vector<std::string> wrong = misfits(file, network, use);
  if (!wrong.empty())
    throw DataError(fmt::format("these are not the weights of network {}:\n  {}", network.name(),
                                fmt::join(wrong, "\n  ")));
}

Checkpoint checkpoint_of(const TensorFile& file, const Network& network) {
  check_checksums(file);
  require_fit(file, network, FileUse::kCheckpoint);
  Checkpoint checkpoint;
  checkpoint.progress = progress_of(file);
  TrainingState& state = checkpoint.state;
  state.weights = weights_of(file, network);
  for (const std::string& name : optimizer_arrays(file)) {
    state.optimizer.push_back({name, joined_tensors(file, network.parameters(), network.parameter_count(),
                                                    std::string(kOptimizerPrefix) + name + "/")});
  }
  state.step_count = std::stoll(required_metadata(file, "step_count"));
  return checkpoint;
}

// What `read` makes of the file at `path`, whose errors name it.
template <typename Read>
auto read_named(const std::filesystem::path& path, const Read& read) {
  const TensorFile file = read_safetensors(path);
  try {
    return read(file);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path.string(), error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: its progress is not JSON: {}", path.string(), json_reason(error)));
  } catch (const std::logic_error& error) {  // of std::stoll()
    throw DataError(fmt::format("{}: its step_count is no number", path.string()));
  }
}

}  // namespace

std::vector<std::string> misfits(const TensorFile& file, const Network& network, FileUse use) {
  std::vector<std::string> found;
  const TensorIndex index(file);
  std::unordered_set<std::string> names;
  const auto require = [&](std::span<const Parameter> layout, const std::string& prefix) {
    for (const Parameter& parameter : layout) {
      const std::string& name = *names.insert(prefix + parameter.name).first;
      const NamedTensor* tensor = index.find(name);
      if (tensor == nullptr)
        found.push_back(fmt::format("missing: {} {}", name, to_string(parameter.shape)));
      else if (tensor->shape != parameter.shape)
        found.push_back(fmt::format("wrong shape: {} is {}, the network's is {}", name,
                                    to_string(tensor->shape), to_string(parameter.shape)));
    }
  };
  require(network.parameters(), "");
  require(network.buffers(), "");
  const bool has_state = use == FileUse::kCheckpoint;
  for (const std::string& array : has_state ? optimizer_arrays(file) : std::vector<std::string>())
    require(network.parameters(), std::string(kOptimizerPrefix) + array + "/");
  for (const NamedTensor& tensor : file.tensors) {
    // PyTorch's batch norm counts its batches, and nothing here uses that count.
    const bool unneeded = (!has_state && tensor.name.starts_with(kOptimizerPrefix)) ||
                          tensor.name.ends_with(".num_batches_tracked");
    if (!unneeded && !names.contains(tensor.name))
      found.push_back(fmt::format("unexpected: {} {}", tensor.name, to_string(tensor.shape)));
  }
  return found;
}

TensorFileView tensors_of(const Network& network, const Weights& weights) {
  TensorFileView file;
  append_tensors(file, network.parameters(), weights.parameters, "");
  append_tensors(file, network.buffers(), weights.buffers, "");
  return file;
}

std::optional<int> last_epoch_of(const TensorFile& file) {
  const auto found = file.metadata.find("epoch");
  return found == file.metadata.end() ? std::nullopt : number_in<int>(found->second);
}

std::optional<int> whole_checkpoint_epoch(const std::filesystem::path& path) {
  const std::optional<RunRecord> record = whole_record(read_checkpoint_record, path);
  return record && !record->epochs.empty() ? std::optional(record->epochs.back().epoch) : std::nullopt;
}

bool has_best_epoch(const RunRecord& record, const std::filesystem::path& run_directory) {
  if (!record.best_epoch || record.epochs.empty() || record.best_epoch == record.epochs.back().epoch)
    return true;
  return whole_checkpoint_epoch(run_directory / kBestFile) == record.best_epoch;
}

TrainingState capture_state(const Engine& engine) {
  return {{engine.parameters(), engine.buffers()}, engine.optimizer_state(), engine.step_count()};
}

void restore_state(Engine& engine, const TrainingState& state) {
  engine.set_parameters(state.weights.parameters);
  engine.set_buffers(state.weights.buffers);
  engine.set_optimizer_state(state.optimizer, state.step_count);
}

void update(CheckpointMetadata& metadata, const RunRecord& record, const RunPosition& position) {
  if (metadata.config.escaped.empty()) {
    append(metadata.config, compact_json_text(record.config));
    append(metadata.provenance, compact_json_text(record.provenance));
    if (record.untrained) append(metadata.epochs, to_json(*record.untrained).dump() + "\n");
  }
  for (; metadata.epoch_count < record.epochs.size(); ++metadata.epoch_count)
    append(metadata.epochs, to_json(record.epochs[metadata.epoch_count]).dump() + "\n");
  metadata.last_epoch = record.epochs.empty() ? 0 : record.epochs.back().epoch;
  Json progress = {{"record", brief_json(record)}};
  progress.update(to_json(position));
  metadata.progress = compact_json_text(progress);
}

void write_checkpoint(const std::filesystem::path& path, const Network& network, const TrainingState& state,
                      const CheckpointMetadata& metadata, Survives survives) {
  TensorFileView file = tensors_of(network, state.weights);
  for (const OptimizerState& array : state.optimizer) {
    append_tensors(file, network.parameters(), array.values,
                   std::string(kOptimizerPrefix) + array.name + "/");
  }
  file.metadata = {{"format", "pt"},
                   {"epoch", std::to_string(metadata.last_epoch)},
                   {"step_count", std::to_string(state.step_count)},
                   {"progress", metadata.progress},
                   {"crc32c", std::to_string(checksum(file))}};
  file.metadata[kHeaderChecksum] =
      header_checksum(file, metadata.epochs.crc, metadata.config.crc, metadata.provenance.crc);
  file.escaped_metadata = {{"config", metadata.config.escaped},
                           {"provenance", metadata.provenance.escaped},
                           {"epochs", metadata.epochs.escaped}};
  try {
    write_safetensors(path, file, survives);
  } catch (const DataError& error) {  // of a header that is too long: some 300,000 epochs
    throw DataError(fmt::format("{}; it has all epochs of the run, of which at most {} have room",
                                error.what(), metadata.epoch_count - 1));
  }
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const Network& network) {
  return read_named(path, [&network](const TensorFile& file) { return checkpoint_of(file, network); });
}

RunRecord read_checkpoint_record(const std::filesystem::path& path) {
  return read_named(path, [](const TensorFile& file) {
    check_checksums(file);
    return progress_of(file).record;
  });
}

void verify_checksums(const TensorFile& file) {
  if (file.metadata.contains("progress") || file.metadata.contains("crc32c")) check_checksums(file);
}

Weights load_weights(const std::filesystem::path& path, const Network& network) {
  return read_named(path, [&network](const TensorFile& file) {
    verify_checksums(file);
    require_fit(file, network, FileUse::kWeights);
    return weights_of(file, network);
  });
}

}  // namespace sweep
