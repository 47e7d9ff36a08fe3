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

/// Layers as the sweep file writes them: [{"name", "type", "arguments": {…}}], sequential and
/// residual with "layers" and "shortcut".
NetworkSpec network_from_json(const std::string& name, const nlohmann::json& layers);

/// The parameters of `network`, taken from tensors called prefix + parameter name.
std::vector<float> parameters_from(const TensorFile& file, const Network& network, const std::string& prefix);

/// The same for its buffers.
std::vector<float> buffers_from(const TensorFile& file, const Network& network, const std::string& prefix);

/// All of a set as one batch, or a part of it: owns what the batch points to.
struct OwnedBatch {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> rows;
  Batch view() const { return {pixels, labels, rows}; }
};

}  // namespace sweep::test
