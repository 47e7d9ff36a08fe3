// Layout of a file: readers/safetensors/tensor_file.h.
#include "core/data/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/safetensors/tensor_file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The header, checked. Messages begin with `path`.
TensorHeader header_of(const std::filesystem::path& path, const TensorFileView& file) {
  TensorHeader header;
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorView& tensor : file.tensors) {
    const std::string where = fmt::format("{}: tensor \"{}\"", path.string(), tensor.name);
    if (tensor.name == kTensorMetadata) refuse(where, "the format reserves this name");
    if (!names.insert(tensor.name).second) refuse(where, "the name is used twice");
    if (const std::size_t needed = element_count(tensor.shape); tensor.values.size() != needed)
      refuse(where, "has {} values, its shape {} needs {}", tensor.values.size(), to_string(tensor.shape),
             needed);
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header.tensors.push_back({tensor.name, TensorType::kF32, tensor.shape, offset, end});
    offset = end;
  }
  return header;
}

// Appends the header of `file` as it is written; `tensors` is the same without the metadata. Its long texts
// are copied once.
void append_header(std::string& text, const TensorFileView& file, const TensorHeader& tensors) {
  const std::string rest = tensor_header_text(tensors);
  if (file.metadata.empty() && file.escaped_metadata.empty()) {
    text += rest;
    return;
  }
  std::size_t bytes = text.size() + rest.size();
  for (const auto& [name, value] : file.metadata) bytes += name.size() + 2 * value.size() + 8;
  for (const auto& [name, value] : file.escaped_metadata) bytes += name.size() + value.size() + 8;
  text.reserve(bytes + 64);
  text.append("{\"").append(kTensorMetadata).append("\":{");
  const auto add = [&](const std::string& name, std::string_view escaped) {
    if (!text.ends_with('{')) text += ',';
    text.append(Json(name).dump()).append(":\"").append(escaped).append("\"");
  };
  for (const auto& [name, value] : file.metadata) add(name, escaped_text(value));
  for (const auto& [name, value] : file.escaped_metadata) add(name, value);
  text.append(tensors.tensors.empty() ? "}" : "},").append(rest, 1);
}

}  // namespace

TensorFile parse_safetensors(std::string_view content, const std::string& name) {
  auto [header, data] = parse_tensor_file(content, name);
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

std::string escaped_text(const std::string& text) {
  const std::string quoted = Json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

void write_safetensors(const std::filesystem::path& path, const TensorFileView& file, Survives survives) {
  const TensorHeader header = header_of(path, file);
  std::string start(kTensorLengthBytes, '\0');
  try {
    append_header(start, file, header);
  } catch (const Json::exception& error) {
    refuse(path, "a tensor's name or the metadata is not valid UTF-8: {}", error.what());
  }
  // Spaces align the data.
  start.resize((start.size() + kTensorLengthBytes - 1) / kTensorLengthBytes * kTensorLengthBytes, ' ');
  const std::uint64_t header_bytes = start.size() - kTensorLengthBytes;
  if (header_bytes > kMaxTensorHeaderBytes) {
    refuse(path, "its header would have {} bytes, at most {} are allowed", header_bytes,
           kMaxTensorHeaderBytes);
  }
  std::memcpy(start.data(), &header_bytes, kTensorLengthBytes);
  std::vector<std::string_view> parts = {start};
  for (const TensorView& tensor : file.tensors) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.values.data()),
                                 tensor.values.size_bytes());
    if (bytes.empty()) continue;
    if (parts.back().data() + parts.back().size() == bytes.data())
      parts.back() = {parts.back().data(), parts.back().size() + bytes.size()};
    else
      parts.push_back(bytes);
  }
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
