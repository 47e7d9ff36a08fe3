// Layout of a file: readers/safetensors/safetensors_header.h.
#include "core/data/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/safetensors/safetensors_header.h"

namespace sweep {
namespace {

// The header, checked. Messages begin with `path`.
TensorHeader header_of(const std::filesystem::path& path, const TensorFileView& file) {
  TensorHeader header;
  header.metadata = file.metadata;
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorView& tensor : file.tensors) {
    const std::string where = path.string() + ": tensor \"" + tensor.name + "\"";
    if (tensor.name == kTensorMetadata) throw DataError(where + ": the format reserves this name");
    if (!names.insert(tensor.name).second) throw DataError(where + ": the name is used twice");
    if (tensor.values.size() != element_count(tensor.shape)) {
      throw DataError(where + ": has " + std::to_string(tensor.values.size()) + " values, its shape " +
                      to_string(tensor.shape) + " needs " + std::to_string(element_count(tensor.shape)));
    }
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header.tensors.push_back({tensor.name, TensorType::kF32, tensor.shape, offset, end});
    offset = end;
  }
  return header;
}

// Adds the bytes of `values` to `parts`, as one with the last if they follow it in memory.
void add_values(std::span<const float> values, std::vector<std::string_view>& parts) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  if (bytes.empty()) return;
  const std::string_view last = parts.back();
  if (last.data() + last.size() == bytes.data())
    parts.back() = {last.data(), last.size() + bytes.size()};
  else
    parts.push_back(bytes);
}

}  // namespace

TensorFile parse_safetensors(std::string_view content, const std::string& name) {
  const std::uint64_t header_bytes = tensor_header_bytes(content, content.size(), name);
  content.remove_prefix(kTensorLengthBytes);
  const std::string_view data = content.substr(header_bytes);
  TensorHeader header = parse_tensor_header(content.substr(0, header_bytes), data.size(), name);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  file.tensors.reserve(header.tensors.size());
  for (TensorEntry& entry : header.tensors) {
    const TypeRow& type = row_of(entry.type);
    std::vector<float> values((entry.end - entry.begin) / type.bytes);
    type.to_floats(reinterpret_cast<const std::uint8_t*>(data.data() + entry.begin), values.size(),
                   values.data());
    file.tensors.push_back({std::move(entry.name), std::move(entry.shape), std::move(values)});
  }
  return file;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

void write_safetensors(const std::filesystem::path& path, const TensorFileView& file, Survives survives) {
  std::string start(kTensorLengthBytes, '\0');
  const TensorHeader header = header_of(path, file);
  try {
    start += tensor_header_text(header);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path.string() + ": a tensor's name or the metadata is not valid UTF-8: " + error.what());
  }
  // Spaces align the data.
  start.append((kTensorLengthBytes - start.size() % kTensorLengthBytes) % kTensorLengthBytes, ' ');
  const std::uint64_t header_bytes = start.size() - kTensorLengthBytes;
  if (header_bytes > kMaxTensorHeaderBytes) {
    throw DataError(path.string() + ": its header would have " + std::to_string(header_bytes) +
                    " bytes, at most " + std::to_string(kMaxTensorHeaderBytes) + " are allowed");
  }
  std::memcpy(start.data(), &header_bytes, kTensorLengthBytes);
  std::vector<std::string_view> parts = {start};
  for (const TensorView& tensor : file.tensors) add_values(tensor.values, parts);
  write_file_atomically(path, parts, survives);
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Survives survives) {
  TensorFileView view;
  for (const NamedTensor& tensor : file.tensors)
    view.tensors.push_back({tensor.name, tensor.shape, tensor.values});
  view.metadata = file.metadata;
  write_safetensors(path, view, survives);
}

}  // namespace sweep
