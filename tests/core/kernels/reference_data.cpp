#include "tests/core/kernels/reference_data.h"

#include <algorithm>
#include <stdexcept>

namespace sweep::test {
namespace {

ArgumentValue argument_from(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::array<std::int64_t, 2>>();
}

}  // namespace

std::filesystem::path reference_path(const std::string& name) {
  return std::filesystem::path(SWEEP_TEST_DATA) / name;
}

NetworkSpec network_from_json(const std::string& name, const nlohmann::json& layers) {
  NetworkSpec spec{name, {}};
  for (const nlohmann::json& layer : layers) {
    LayerSpec& added = spec.layers.emplace_back(LayerSpec{layer.at("name"), layer.at("type"), {}});
    for (const auto& [key, value] : layer.at("arguments").items())
      added.arguments[key] = argument_from(value);
  }
  return spec;
}

std::vector<float> parameters_from(const TensorFile& file, const Network& network,
                                   const std::string& prefix) {
  std::vector<float> values(network.parameter_count());
  for (const Parameter& parameter : network.parameters()) {
    const NamedTensor* tensor = file.find(prefix + parameter.name);
    if (tensor == nullptr || tensor->shape != parameter.shape)
      throw std::runtime_error("no reference for " + parameter.name);
    std::copy(tensor->values.begin(), tensor->values.end(),
              values.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  return values;
}

}  // namespace sweep::test
