#include "runmanager/export/state_dict.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "core/data/safetensors.h"

namespace sweep {

void write_state_dict(const std::filesystem::path& path, const LoadedRun& run) {
  TensorFileView file;
  const auto append = [&file](std::span<const Parameter> layout, std::span<const float> values) {
    for (const Parameter& array : layout)
      file.tensors.push_back({array.name, array.shape, values.subspan(array.offset, array.count)});
  };
  append(run.network->parameters(), run.weights.parameters);
  append(run.network->buffers(), run.weights.buffers);
  file.metadata = {{"format", "pt"},
                   {"run", run.record.name},
                   {"epoch", std::to_string(run.epoch)},
                   {"input", to_json(run.samples).dump()}};
  write_safetensors(path, file);
}

}  // namespace sweep
