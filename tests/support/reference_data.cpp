#include "tests/support/reference_data.h"

namespace sweep::test {
namespace {

std::vector<LayerSpec> layers_from(const nlohmann::json& layers) {
  std::vector<LayerSpec> specs;
  for (const nlohmann::json& layer : layers) {
    LayerSpec& added = specs.emplace_back(
        LayerSpec{layer.at("name"), layer.at("type"), arguments_from(layer.at("arguments"))});
    if (layer.contains("layers")) added.layers = layers_from(layer.at("layers"));
    if (layer.contains("shortcut")) added.shortcut = layers_from(layer.at("shortcut"));
  }
  return specs;
}

std::vector<float> values_from(const TensorFile& file, std::span<const Parameter> arrays,
                               const std::string& prefix) {
  std::vector<float> values;
  const TensorIndex index(file);
  for (const Parameter& array : arrays) {
    const NamedTensor* tensor = index.find(prefix + array.name);
    if (tensor == nullptr || tensor->shape != array.shape)
      throw std::runtime_error("no reference for " + prefix + array.name);
    values.insert(values.end(), tensor->values.begin(), tensor->values.end());
  }
  return values;
}

}  // namespace

std::filesystem::path reference_path(const std::string& name) {
  // Tests may have been moved away from where they were built.
  const char* moved = std::getenv("SWEEP_TEST_DATA");
  return std::filesystem::path(moved != nullptr ? moved : SWEEP_TEST_DATA) / name;
}

nlohmann::json reference_json(const std::string& name) {
  std::ifstream in(reference_path(name));
  return nlohmann::json::parse(in);
}

NetworkSpec network_from_json(const std::string& name, const nlohmann::json& layers) {
  return {name, layers_from(layers)};
}

std::vector<float> parameters_from(const TensorFile& file, const Network& network,
                                   const std::string& prefix) {
  return values_from(file, network.parameters(), prefix);
}

std::vector<float> buffers_from(const TensorFile& file, const Network& network, const std::string& prefix) {
  return values_from(file, network.buffers(), prefix);
}

}  // namespace sweep::test
