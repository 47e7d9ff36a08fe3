#include "runmanager/export/model_files.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/export/onnx_graph.h"
#include "runmanager/records/provenance.h"

namespace sweep {
namespace {

constexpr int kIrVersion = 8;  // that of operator sets 15 and less

}  // namespace

void write_onnx(const std::filesystem::path& path, const LoadedRun& run) {
  onnx_format::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("sweep");
  model.set_producer_version(program_version());
  model.add_opset_import()->set_version(kOnnxOperatorSet);
  *model.mutable_graph() = onnx_graph(*run.network, run.weights, run.samples);
  const auto add = [&model](const char* key, std::string value) {
    onnx_format::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(std::move(value));
  };
  add("run", run.record.name);
  add("epoch", std::to_string(run.epoch));
  add("input", to_json(run.samples).dump());
  const bool has_classes = !run.samples.class_names.empty();
  add(has_classes ? "classes" : "targets",
      nlohmann::ordered_json(has_classes ? run.samples.class_names : run.samples.target_names).dump());
  std::string bytes;
  if (model.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !model.SerializeToString(&bytes)) {
    throw DataError(
        path.string() +
        ": the network is too large for an ONNX file, which holds less than 2 GiB; a .safetensors "
        "file has no such limit");
  }
  write_file_atomically(path, bytes);
}

void write_state_dict(const std::filesystem::path& path, const LoadedRun& run) {
  TensorFileView file = tensors_of(*run.network, run.weights);
  file.metadata = {{"format", "pt"},
                   {"run", run.record.name},
                   {"epoch", std::to_string(run.epoch)},
                   {"input", to_json(run.samples).dump()}};
  write_safetensors(path, file);
}

}  // namespace sweep
