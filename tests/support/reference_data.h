// Values that PyTorch computed; see tests/data/make_references.py.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/data_loader.h"
#include "core/data/safetensors.h"
#include "core/network/network.h"

namespace sweep::test {

/// tests/data/<name>.
std::filesystem::path reference_path(const std::string& name);
nlohmann::json reference_json(const std::string& name);
/// A table or the figures of PyTorch and scikit-learn about tables: "iris.csv".
inline std::filesystem::path table_path(const std::string& name) { return reference_path("tables/" + name); }

/// Layers as make_references.py writes them: [{"name", "type", "arguments": {…}}], sequential and residual
/// with "layers" and "shortcut".
NetworkSpec network_from_json(const std::string& name, const nlohmann::json& layers);

/// The parameters of `network`, from the tensors named `prefix` + the parameter's name. Throws if one is
/// missing or has another shape.
std::vector<float> parameters_from(const TensorFile& file, const Network& network, const std::string& prefix);

/// The same for the running statistics of `network`.
std::vector<float> buffers_from(const TensorFile& file, const Network& network, const std::string& prefix);

/// A batch that owns the samples it points to.
struct OwnedBatch {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> indices;
  Batch view() const { return {pixels, labels, indices}; }
};

}  // namespace sweep::test
