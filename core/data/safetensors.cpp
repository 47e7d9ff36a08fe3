// Layout of a file: readers/safetensors_header.h.
#include "core/data/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/array_values.h"
#include "core/data/readers/safetensors/safetensors_header.h"

namespace sweep {
namespace {

// The types that convert to float.
constexpr TensorType kWeightTypes[] = {TensorType::kF32, TensorType::kF64, TensorType::kF16,
                                       TensorType::kBf16, TensorType::kI64};

template <typename T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);  // The data may be unaligned.
  return value;
}

float from_double(double value) {
  // The conversion of a double outside the range of float is undefined; it becomes infinity here.
  if (value > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
  if (value < -std::numeric_limits<float>::max()) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

std::vector<float> convert(std::string_view data, TensorType type) {
  std::vector<float> values(data.size() / bytes_of(type));
  if (type == TensorType::kF32) {
    if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const char* bytes = data.data() + i * bytes_of(type);
    if (type == TensorType::kF64) values[i] = from_double(load<double>(bytes));
    if (type == TensorType::kI64) values[i] = static_cast<float>(load<std::int64_t>(bytes));
    if (type == TensorType::kF16) values[i] = half_to_float(load<std::uint16_t>(bytes));
    if (type == TensorType::kBf16) values[i] = bfloat_to_float(load<std::uint16_t>(bytes));
  }
  return values;
}

}  // namespace

const NamedTensor* TensorFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

TensorFile parse_safetensors(std::string_view content, const std::string& name) {
  const std::uint64_t header_bytes = tensor_header_bytes(content, content.size(), name);
  content.remove_prefix(kTensorLengthBytes);
  const std::string_view data = content.substr(header_bytes);
  TensorHeader header = parse_tensor_header(content.substr(0, header_bytes), data.size(), kWeightTypes, name);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  file.tensors.reserve(header.tensors.size());
  for (TensorEntry& entry : header.tensors) {
    file.tensors.push_back({std::move(entry.name), std::move(entry.shape),
                            convert(data.substr(entry.begin, entry.end - entry.begin), entry.type)});
  }
  return file;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace sweep
